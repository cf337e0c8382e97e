package script

import "baton/internal/redisconn"

// Keys has the names of all keys of one election. All of them are in the slot of the lock key, so that one script may use several of
// them.
//
// K is the lock key. If K has a hash tag ("a{x}b"), the other keys are K and a suffix ("a{x}b:term"), which keeps the tag. Otherwise K
// itself becomes the tag ("{baton}:term").
type Keys struct {
	lockKey string
	prefix  string
}

// KeysOf returns the keys of the election that has this lock.
func KeysOf(lockKey string) Keys {
	return Keys{lockKey: lockKey, prefix: redisconn.SlotPrefix(lockKey)}
}

// Lock returns the key that the leader holds.
func (k Keys) Lock() string { return k.lockKey }

// Term returns the hash of the last term: its epoch, its owner and more.
func (k Keys) Term() string { return k.prefix + ":term" }

// Quarantine returns the key that exists during a quarantine. No new owner may win then, because Redis may have lost data.
func (k Keys) Quarantine() string { return k.prefix + ":quarantine" }

// Nodes returns the hash with the entries of the nodes.
func (k Keys) Nodes() string { return k.prefix + ":nodes" }

// Control returns the hash with the operators' orders, to nodes and for jobs.
func (k Keys) Control() string { return k.prefix + ":control" }

// Events returns the stream of the lock's events.
func (k Keys) Events() string { return k.prefix + ":events" }

// Wake returns the channel that announces to standbys that the lock is free.
func (k Keys) Wake() string { return k.prefix + ":wake" }

// Fence returns the hash with the highest epoch that has claimed a run.
func (k Keys) Fence() string { return k.prefix + ":fence" }

// Samples returns the stream with the lag of the jobs over time.
func (k Keys) Samples() string { return k.prefix + ":samples" }

// Stages returns the hash with the keys that flushes have staged.
func (k Keys) Stages() string { return k.prefix + ":stages" }

// Job returns the hash of a job's state.
func (k Keys) Job(name string) string { return k.prefix + ":job:" + name }

// Runs returns the stream of a job's runs.
func (k Keys) Runs(name string) string { return k.Job(name) + ":runs" }

// Outputs returns the sorted set of those runs of a job that have output.
func (k Keys) Outputs(job string) string { return k.Job(job) + ":output" }

// Output returns the key with the output of a run's command.
func (k Keys) Output(job, run string) string { return k.Outputs(job) + ":" + run }

// Preview returns the key with the progress of a job's preview of all keys.
func (k Keys) Preview(job string) string { return k.Job(job) + ":preview" }

// Priority returns the field of Control that has a node's priority.
func (k Keys) Priority(node string) string { return "priority:" + node }

// CoolDown returns the field of Control for a node that does not campaign for a while.
func (k Keys) CoolDown(node string) string { return "aside:" + node }

// Request returns the field of Control for the order to run a job now.
func (k Keys) Request(job string) string { return "run:" + job }

// Operation returns the field of Control for an operation of a job that has not ended.
func (k Keys) Operation(job string) string { return "operation:" + job }

// Cancel returns the field of Control for the order to cancel a job's runs.
func (k Keys) Cancel(job string) string { return "cancel:" + job }
