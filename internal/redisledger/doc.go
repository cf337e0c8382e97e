// Package redisledger keeps the state of jobs in Redis, next to the lock: claimed slots, results
// of runs, pending orders and output. Every script is a file of its own beside the code that
// runs it.
package redisledger
