// Package redisledger keeps in Redis, beside the lock, what jobs have to remember: which
// slots were claimed, how runs ended, what is asked of them, and what they print. Every script
// is a file of its own beside the code that runs it.
package redisledger
