package script

import "baton/internal/redisconn"

// Keys are the names of everything that belongs to one election. All of them
// hash to the slot of the lock key, so that one script may touch several.
//
// With lock key K: if K has a hash tag of its own ("a{x}b") the other keys are
// K followed by their suffix ("a{x}b:term"), which keeps the tag; else K itself
// becomes the tag ("{baton}:term").
type Keys struct {
	lockKey string
	prefix  string
}

// KeysOf are the keys of the election of a lock.
func KeysOf(lockKey string) Keys {
	return Keys{lockKey: lockKey, prefix: redisconn.SlotPrefix(lockKey)}
}

// Lock is the key that the leader holds.
func (k Keys) Lock() string { return k.lockKey }

// Term is the hash of the last term: its epoch, its owner and their like.
func (k Keys) Term() string { return k.prefix + ":term" }

// Quarantine exists while no new owner may win, after Redis has lost data.
func (k Keys) Quarantine() string { return k.prefix + ":quarantine" }

// Nodes is the hash of the nodes' presence.
func (k Keys) Nodes() string { return k.prefix + ":nodes" }

// Control is the hash of the operators' orders, to nodes and for jobs.
func (k Keys) Control() string { return k.prefix + ":control" }

// Events is the stream of the lock's events.
func (k Keys) Events() string { return k.prefix + ":events" }

// Wake is the channel that informs standbys when the lock becomes free.
func (k Keys) Wake() string { return k.prefix + ":wake" }

// Fence is the hash of the newest epoch that claims have seen.
func (k Keys) Fence() string { return k.prefix + ":fence" }

// Samples is the stream of the jobs' levels over time.
func (k Keys) Samples() string { return k.prefix + ":samples" }

// Stages is the hash of the keys where flushes have staged.
func (k Keys) Stages() string { return k.prefix + ":stages" }

// Job is the hash of a job's standing.
func (k Keys) Job(name string) string { return k.prefix + ":job:" + name }

// Runs is the stream of a job's runs.
func (k Keys) Runs(name string) string { return k.Job(name) + ":runs" }

// Outputs is the sorted set of a job's runs that have output.
func (k Keys) Outputs(job string) string { return k.Job(job) + ":output" }

// Output is the key of the output of a run's command.
func (k Keys) Output(job, run string) string { return k.Outputs(job) + ":" + run }

// Priority is the field of Control with a node's priority.
func (k Keys) Priority(node string) string { return "priority:" + node }

// CoolDown is the field of Control of a node that does not campaign for a while.
func (k Keys) CoolDown(node string) string { return "aside:" + node }

// Request is the field of Control with the order to run a job now.
func (k Keys) Request(job string) string { return "run:" + job }

// Operation is the field of Control with an operation of a job that is not over.
func (k Keys) Operation(job string) string { return "operation:" + job }

// Cancel is the field of Control with the order to cancel a job's runs.
func (k Keys) Cancel(job string) string { return "cancel:" + job }
