package redis.clients.jedis;

import java.io.*;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.*;

/** As much of the Jedis of that name as the examples of docs/sources.md use, over a real connection. */
public class Jedis implements Closeable {
    private final Socket socket;
    private final OutputStream out;
    private final InputStream in;

    public Jedis(String host, int port) throws IOException {
        socket = new Socket(host, port);
        out = socket.getOutputStream();
        in = new BufferedInputStream(socket.getInputStream());
    }

    public void hincrBy(String key, String field, long by) { call("HINCRBY", key, field, Long.toString(by)); }
    public void incrBy(String key, long by) { call("INCRBY", key, Long.toString(by)); }
    public void sadd(String key, String... members) { call(with(members, "SADD", key)); }
    public void zrem(String key, String... members) { call(with(members, "ZREM", key)); }
    public void zadd(String key, double score, String member) { call("ZADD", key, Double.toString(score), member); }
    public void rpush(String key, String... values) { call(with(values, "RPUSH", key)); }
    public void hset(String key, Map<String, String> fields) { call(with(flat(fields), "HSET", key)); }
    public void xadd(String key, StreamEntryID id, Map<String, String> fields) { call(with(flat(fields), "XADD", key, id.toString())); }

    public Transaction multi() {
        call("MULTI");
        return new Transaction(this);
    }

    /** Returns the elements of a reply that has several; those that Redis refused are exceptions. */
    List<Object> call(String... words) {
        try {
            var request = new StringBuilder("*" + words.length + "\r\n");
            for (var word : words) {
                request.append("$").append(word.getBytes(StandardCharsets.UTF_8).length).append("\r\n").append(word).append("\r\n");
            }
            out.write(request.toString().getBytes(StandardCharsets.UTF_8));
            out.flush();
            return reply();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Reads one reply, and throws one that is an error. */
    private List<Object> reply() throws IOException {
        var line = line();
        var elements = new ArrayList<Object>();
        switch (line.charAt(0)) {
            case '-' -> throw new IllegalStateException(line);
            case '$' -> {
                int size = Integer.parseInt(line.substring(1));
                if (size >= 0) in.skipNBytes(size + 2);
            }
            case '*' -> {
                for (int i = Integer.parseInt(line.substring(1)); i > 0; i--) {
                    try {
                        elements.add(reply());
                    } catch (IllegalStateException refused) {
                        elements.add(refused);
                    }
                }
            }
            default -> { }
        }
        return elements;
    }

    private String line() throws IOException {
        var line = new StringBuilder();
        for (int c = in.read(); c != '\r'; c = in.read()) {
            if (c < 0) throw new EOFException();
            line.append((char) c);
        }
        in.read();
        return line.toString();
    }

    private static String[] with(String[] rest, String... first) {
        var all = new ArrayList<>(List.of(first));
        all.addAll(List.of(rest));
        return all.toArray(new String[0]);
    }

    private static String[] flat(Map<String, String> fields) {
        var all = new ArrayList<String>();
        fields.forEach((field, value) -> { all.add(field); all.add(Objects.requireNonNull(value)); });
        return all.toArray(new String[0]);
    }

    @Override public void close() throws IOException { socket.close(); }
}
