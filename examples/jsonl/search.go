// A search that answers JSON lines: go run search.go
package main

import (
	"encoding/json"
	"os"
	"sort"
	"strings"
)

type Request struct {
	ID    int
	Query string
	K     int
}

type Hit struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	Score int    `json:"score"`
}

type Answer struct {
	ID    int    `json:"id"`
	Hits  []Hit  `json:"hits"`
	Error string `json:"error,omitempty"`
}

func search(corpus string, query string, k int) []Hit {
	hits := []Hit{}
	for _, line := range strings.Split(strings.TrimSpace(corpus), "\n") {
		id, text, _ := strings.Cut(line, "\t")
		hit := Hit{ID: id, Title: text}
		for _, word := range strings.Fields(strings.ToLower(query)) {
			if strings.Contains(strings.ToLower(text), word) {
				hit.Score++
			}
		}
		if hit.Score > 0 {
			hits = append(hits, hit)
		}
	}
	sort.SliceStable(hits, func(a, b int) bool { return hits[a].Score > hits[b].Score })
	if len(hits) > k {
		hits = hits[:k]
	}
	return hits
}

func main() {
	corpus, err := os.ReadFile("corpus.tsv")
	requests, answers := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var request Request
		if requests.Decode(&request) != nil {
			return // the end of the input
		}
		answer := Answer{ID: request.ID, Hits: search(string(corpus), request.Query, request.K)}
		if err != nil {
			answer.Error = err.Error()
		}
		answers.Encode(answer) // writes a line, without a buffer
	}
}
