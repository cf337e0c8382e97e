package redisledger

import (
	"baton/internal/redisconn"
	"baton/internal/redislock/script"
)

// ledgerCommands: J is the hash of a job, H its history, O the output of a run, U the list of
// outputs.
var ledgerCommands = []string{
	"HGET J f", "HMGET J f", "HSET J f v", "HSETNX J f v", "HDEL J f", "HGETALL J", "HINCRBY J f 1", "PERSIST J",
	"XADD H * f v", "XREVRANGE H + -", "XDEL H 1-1", "XTRIM H MINID 0",
	"SET O v", "APPEND O v", "STRLEN O", "GETRANGE O 0 1", "PEXPIRE O 1", "UNLINK O", "ZADD U 0 v", "ZRANGE U 0 1", "ZREMRANGEBYRANK U 0 1",
}

// Access lists the commands and keys that the ledger of a lock needs.
func Access(lockKey string) redisconn.Place {
	of := func(lockKey, job string) map[string]string {
		k := script.KeysOf(lockKey)
		return map[string]string{"J": k.Job(job), "H": k.Runs(job), "O": k.Output(job, job), "U": k.Outputs(job)}
	}
	return redisconn.Place{Key: lockKey, Names: of(lockKey, "x"), Patterns: of(redisconn.Glob(lockKey), "*"), Commands: ledgerCommands}
}
