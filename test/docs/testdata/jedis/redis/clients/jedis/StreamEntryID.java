package redis.clients.jedis;

/** See Jedis. */
public class StreamEntryID {
    public static final StreamEntryID NEW_ENTRY = new StreamEntryID();

    @Override public String toString() { return "*"; }
}
