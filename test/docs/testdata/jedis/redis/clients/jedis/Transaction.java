package redis.clients.jedis;

import java.io.Closeable;
import java.util.List;
import java.util.Map;

/** See Jedis. */
public class Transaction implements Closeable {
    private final Jedis jedis;
    private boolean open = true;

    Transaction(Jedis jedis) { this.jedis = jedis; }

    public void incrBy(String key, long by) { jedis.incrBy(key, by); }
    public void sadd(String key, String... members) { jedis.sadd(key, members); }
    public void zadd(String key, double score, String member) { jedis.zadd(key, score, member); }
    public void zadd(String key, Map<String, Double> members) { members.forEach((member, score) -> zadd(key, score, member)); }
    public void hset(String key, Map<String, String> fields) { jedis.hset(key, fields); }
    public void unlink(String key) { jedis.call("UNLINK", key); }

    /** As Jedis has it: what was refused is among the replies. */
    public List<Object> exec() {
        open = false;
        return jedis.call("EXEC");
    }

    @Override public void close() {
        if (open) {
            open = false;
            jedis.call("DISCARD");
        }
    }
}
