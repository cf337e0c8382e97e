// Package redislock keeps in Redis the lock of an election, and what belongs to it: epochs,
// nodes, orders, events. Every script is a file of its own beside the code that runs it.
package redislock
