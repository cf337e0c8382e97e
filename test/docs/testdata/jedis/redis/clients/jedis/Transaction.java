package redis.clients.jedis;

import java.util.Map;

/** See Jedis. */
public class Transaction {
    private final Jedis jedis;

    Transaction(Jedis jedis) { this.jedis = jedis; }

    public void incrBy(String key, long by) { jedis.incrBy(key, by); }
    public void sadd(String key, String... members) { jedis.sadd(key, members); }
    public void zadd(String key, double score, String member) { jedis.zadd(key, score, member); }
    public void hset(String key, Map<String, String> fields) { jedis.hset(key, fields); }
    public void exec() { jedis.call("EXEC"); }
}
