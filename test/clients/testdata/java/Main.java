import java.util.HashMap;
import java.util.List;
import redis.clients.jedis.Jedis;

/** Calls the functions of clients/java: see the test. */
public class Main {
    static final Changed.Index USERS = new Changed.Index("changed:user");
    static final Changed.Index HITS = new Changed.Index("changed:hits");
    static Jedis redis;

    public static void main(String[] args) throws Exception {
        var addr = args[0].split(":");
        redis = new Jedis(addr[0], Integer.parseInt(addr[1]));
        switch (args[1]) {
            case "each" -> {
                save("ä 1", "7");
                Changed.remove(redis, "user:2", USERS, "2");
                Changed.count(redis, "hits:home", 2, HITS, "home");
                Changed.countField(redis, "views", 16, "123456789", 3);
                Changed.change(redis, new Changed.Index("changed:board", true), List.of("a", "b"), tx -> {
                    tx.zadd("board", 1, "a");
                    tx.zadd("board", 2, "b");
                });
            }
            case "work" -> work(Integer.parseInt(args[2]), Integer.parseInt(args[3]));
            case "lost" -> attempt(() -> Changed.count(redis, "hits:lost", 1, HITS, "lost"));
            case "lost-field" -> attempt(() -> Changed.countField(redis, "views", 1, "lost", 1));
            case "refused" -> {
                attempt(() -> save("1", "1"));
                Changed.countField(redis, "views", 16, "1", 1); // the connection is fit for more
            }
            case "null" -> attempt(() -> save("1", null));
            default -> throw new IllegalArgumentException(args[1]);
        }
    }

    static void work(int worker, int n) {
        for (int i = 0; i < n; i++) {
            var id = Integer.toString(worker * 1000 + i % 50);
            if (i % 7 == 6) {
                Changed.remove(redis, "user:" + id, USERS, id);
            } else {
                save(id, Integer.toString(i));
            }
            var page = Integer.toString(i % 10);
            Changed.count(redis, "hits:" + page, 1, HITS, page);
            Changed.countField(redis, "views", 16, page, 1);
            System.out.println(i);
        }
    }

    static void save(String id, String n) {
        var fields = new HashMap<String, String>();
        fields.put("n", n);
        Changed.save(redis, "user:" + id, fields, USERS, id);
    }

    static void attempt(Runnable call) {
        try {
            call.run();
            System.out.println("ok");
        } catch (RuntimeException e) {
            System.out.println("error " + e);
        }
    }
}
