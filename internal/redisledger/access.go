package redisledger

import (
	"baton/internal/redisconn"
	"baton/internal/redislock/script"
)

// ledgerCommands lists the commands that the ledger sends. In these commands, J is the hash of a job and H is its history. O is the output
// of a run, U is the list of outputs, and P is the progress of a preview.
var ledgerCommands = []string{
	"HGET J f", "HMGET J f", "HSET J f v", "HSETNX J f v", "HDEL J f", "HGETALL J", "HINCRBY J f 1", "PERSIST J",
	"XADD H * f v", "XREVRANGE H + -", "XDEL H 1-1", "XTRIM H MINID 0",
	"SET O v", "APPEND O v", "STRLEN O", "GETRANGE O 0 1", "PEXPIRE O 1", "UNLINK O", "ZADD U 0 v", "ZRANGE U 0 1", "ZREMRANGEBYRANK U 0 1",
	"GET P", "SET P v", "UNLINK P",
}

// Access lists the commands and keys that the ledger of a lock needs.
func Access(lockKey string) redisconn.KeyCommands {
	of := func(lockKey, job string) map[string]string {
		k := script.KeysOf(lockKey)
		return map[string]string{"J": k.Job(job), "H": k.Runs(job), "O": k.Output(job, job), "U": k.Outputs(job), "P": k.Preview(job)}
	}
	names, patterns := of(lockKey, "x"), of(redisconn.Glob(lockKey), "*")
	return redisconn.KeyCommands{Key: lockKey, Names: names, Patterns: patterns, Commands: ledgerCommands}
}
