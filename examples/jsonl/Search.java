// A search that answers JSON lines: java Search.java
// Java's library has no JSON. Two regular expressions read what Cranfield writes; Jackson or Gson do more.
import java.io.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import java.util.regex.*;
import java.util.stream.*;

public class Search {
    static final Pattern REQUEST = Pattern.compile("\\{\"id\": (\\d+), \"query\": \"((?:[^\"\\\\]|\\\\.)*)\", \"k\": (\\d+)");
    static final Pattern ESCAPE = Pattern.compile("\\\\(?:u(....)|(.))");

    record Hit(String id, String text, long score) {}

    static List<Hit> search(List<String> corpus, String query, int k) {
        List<String> words = Stream.of(query.toLowerCase().split("(?U)\\s+")).filter(word -> !word.isEmpty()).toList();
        return corpus.stream()
            .map(line -> line.split("\t"))
            .map(parts -> new Hit(parts[0], parts[1], words.stream().filter(parts[1].toLowerCase()::contains).count()))
            .filter(hit -> hit.score() > 0)
            .sorted(Comparator.comparing(hit -> -hit.score()))
            .limit(k)
            .toList();
    }

    static String unquoted(String json) {
        return ESCAPE.matcher(json).replaceAll(found -> Matcher.quoteReplacement(found.group(1) != null
            ? String.valueOf((char) Integer.parseInt(found.group(1), 16))
            : found.group(2).replace('n', '\n').replace('t', '\t').replace('r', '\r').replace('b', '\b').replace('f', '\f')));
    }

    static String quoted(String text) {
        return '"' + text.replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", "\\n").replace("\t", "\\t") + '"';
    }

    public static void main(String[] arguments) throws IOException {
        List<String> corpus = Files.readAllLines(Path.of("corpus.tsv"));
        PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = in.readLine()) != null; ) {
            Matcher request = REQUEST.matcher(line);
            request.lookingAt();
            try {
                String hits = search(corpus, unquoted(request.group(2)), Integer.parseInt(request.group(3))).stream()
                    .map(hit -> "{\"id\": " + quoted(hit.id()) + ", \"title\": " + quoted(hit.text()) + ", \"score\": " + hit.score() + "}")
                    .collect(Collectors.joining(", "));
                out.println("{\"id\": " + request.group(1) + ", \"hits\": [" + hits + "]}");
            } catch (RuntimeException error) {
                out.println("{\"id\": " + request.group(1) + ", \"error\": " + quoted(error.toString()) + "}");
            }
        }
    }
}
