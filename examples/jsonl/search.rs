// A search that answers JSON lines: rustc -O search.rs && ./search
// Rust's library has no JSON: `text_after` and `number_after` read what Cranfield writes; serde_json does more.
use std::io::{stdin, BufRead};

fn search(corpus: &str, query: &str, k: usize) -> Vec<(String, String, usize)> {
    let query = query.to_lowercase();
    let mut hits: Vec<_> = corpus
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .map(|(id, text)| {
            let lower = text.to_lowercase();
            let score = query.split_whitespace().filter(|word| lower.contains(word)).count();
            (id.to_string(), text.to_string(), score)
        })
        .filter(|hit| hit.2 > 0)
        .collect();
    hits.sort_by_key(|hit| std::cmp::Reverse(hit.2));
    hits.truncate(k);
    hits
}

fn number_after(line: &str, key: &str) -> usize {
    let rest = &line[line.find(key).map_or(0, |at| at + key.len())..];
    rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap_or(0)
}

fn text_after<'a>(line: &'a str, key: &str) -> (String, &'a str) {
    let (mut units, mut rest) = (Vec::new(), &line[line.find(key).map_or(0, |at| at + key.len())..]);
    while !rest.starts_with('"') && !rest.is_empty() {
        if rest.starts_with("\\u") {
            units.push(u16::from_str_radix(&rest[2..6], 16).unwrap_or(0xFFFD));
            rest = &rest[6..];
            continue;
        }
        let escaped = rest.starts_with('\\');
        let letter = rest.as_bytes()[escaped as usize];
        units.push(match (escaped, letter) {
            (true, b'n') => 10,
            (true, b't') => 9,
            (true, b'r') => 13,
            (true, b'b') => 8,
            (true, b'f') => 12,
            _ => letter as u16, // requests are ASCII
        });
        rest = &rest[1 + escaped as usize..];
    }
    (String::from_utf16_lossy(&units), rest)
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").replace('\t', "\\t"))
}

fn main() {
    let corpus = std::fs::read_to_string("corpus.tsv");
    for line in stdin().lock().lines().map_while(Result::ok) {
        let id = number_after(&line, "{\"id\": ");
        let (query, rest) = text_after(&line, "\"query\": \"");
        match &corpus {
            Ok(corpus) => {
                let hits: Vec<_> = search(corpus, &query, number_after(rest, "\"k\": "))
                    .iter()
                    .map(|(id, text, score)| format!("{{\"id\": {}, \"title\": {}, \"score\": {score}}}", quoted(id), quoted(text)))
                    .collect();
                println!("{{\"id\": {id}, \"hits\": [{}]}}", hits.join(", "));
            }
            Err(error) => println!("{{\"id\": {id}, \"error\": {}}}", quoted(&error.to_string())),
        }
    }
}
