import java.nio.charset.StandardCharsets;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.Transaction;

/**
 * Writes to Redis, by Jedis, what baton flushes: hashes and counters with an index of those that have
 * changed. Copy this file; it needs Jedis and no more.
 *
 * <p>Every change and its mark are one MULTI/EXEC, the mark last: Redis has both or neither, whatever
 * becomes of this process. A JedisConnectionException may come after EXEC was carried out. Then a hash
 * may be saved again; a count may be in Redis, and counts twice if it is sent again. A Jedis object
 * sends nothing twice; it is for one thread at a time.
 */
public final class Changed {
    private Changed() { }

    /** The key that baton's configuration has in changed: a SET, or a ZSET scored by the time of the change in milliseconds. */
    public record Index(String key, boolean scored) {
        public Index(String key) { this(key, false); }
    }

    /** Sets fields of the hash key, and marks its id as changed. Other fields stay. */
    public static void save(Jedis redis, String key, Map<String, String> fields, Index index, String id) {
        change(redis, index, List.of(id), tx -> tx.hset(key, fields));
    }

    /** Deletes the hash key, and marks its id as changed: the flush deletes the row. */
    public static void remove(Jedis redis, String key, Index index, String id) {
        change(redis, index, List.of(id), tx -> tx.unlink(key));
    }

    /** Adds n to the counter key, which is that of id, and marks id as changed. */
    public static void count(Jedis redis, String key, long n, Index index, String id) {
        change(redis, index, List.of(id), tx -> tx.incrBy(key, n));
    }

    /**
     * Adds n to a field of one of the hashes key:0 to key:(shards-1), always the same one for a field.
     * These counters need no index: see [0-15] in baton's configuration.
     */
    public static void countField(Jedis redis, String key, int shards, String field, long n) {
        redis.hincrBy(key + ":" + shard(field, shards), field, n);
    }

    /**
     * Sends what commands adds, and marks the ids as changed, all in one MULTI. Redis serves nobody
     * else meanwhile: some hundred rows at a time.
     */
    public static void change(Jedis redis, Index index, Collection<String> ids, Consumer<Transaction> commands) {
        if (ids.isEmpty()) {
            throw new IllegalArgumentException("no ids to mark");
        }
        List<Object> replies;
        try (Transaction tx = redis.multi()) { // closed without exec, as after an exception, it is discarded
            commands.accept(tx);
            if (index.scored()) {
                var marks = new HashMap<String, Double>();
                ids.forEach(id -> marks.put(id, (double) System.currentTimeMillis()));
                tx.zadd(index.key(), marks);
            } else {
                tx.sadd(index.key(), ids.toArray(String[]::new));
            }
            replies = tx.exec();
        }
        if (replies == null) {
            throw new IllegalStateException("the transaction was discarded: a key of your WATCH has changed");
        }
        // What Redis refuses inside EXEC is in the reply, and not thrown: a mark may be missing.
        for (Object reply : replies) {
            if (reply instanceof RuntimeException refused) {
                throw refused;
            }
        }
    }

    /** The CRC-16 of the text, as Redis Cluster has it, modulo shards. */
    public static int shard(String text, int shards) {
        int crc = 0;
        for (byte b : text.getBytes(StandardCharsets.UTF_8)) {
            crc ^= (b & 0xff) << 8;
            for (int i = 0; i < 8; i++) {
                crc = ((crc & 0x8000) != 0 ? crc << 1 ^ 0x1021 : crc << 1) & 0xffff;
            }
        }
        return crc % shards;
    }
}
