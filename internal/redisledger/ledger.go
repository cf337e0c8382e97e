package redisledger

import (
	"context"
	"embed"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/job"
	"baton/internal/redisconn"
	"baton/internal/redislock/script"
)

//go:embed *.lua
var luaFiles embed.FS

var (
	claimScripts = fencedScripts(4, "job_claim")
	missScripts  = fencedScripts(3, "job_miss")
	finishScript = ledgerScript(2, "job_finish")
)

// fenced is a script in two forms, one for each way to verify the leader.
type fenced struct{ byString, byRedisson, byEpoch *redis.Script }

func fencedScripts(keys int, name string) fenced {
	return fenced{
		byString:   redis.NewScript(keys, script.String.Lua()+ledgerLua("claim_by_lock", name)),
		byRedisson: redis.NewScript(keys, script.Redisson.Lua()+ledgerLua("claim_by_lock", name)),
		byEpoch:    redis.NewScript(keys, ledgerLua("claim_by_epoch", name)),
	}
}

func (f fenced) of(o LedgerOptions) *redis.Script {
	switch {
	case o.ByEpoch:
		return f.byEpoch
	case o.Format == script.Redisson:
		return f.byRedisson
	}
	return f.byString
}

// ledgerScript makes a script of the shared Lua and this part.
func ledgerScript(keys int, part string) *redis.Script {
	return redis.NewScript(keys, ledgerLua(part))
}

// ledgerLua is the shared Lua, followed by these parts.
func ledgerLua(parts ...string) string {
	return redisconn.Lua(luaFiles, append([]string{"job_lib"}, parts...)...)
}

// defaultKeep is the default number of history entries per job.
const defaultKeep = 200

// Ledger records started slots and the results of runs: a job.Ledger, and the history for
// status pages.
//
// The hash {K}:job:NAME has of a job
//   - begun, the first slot that was ever claimed (ms);
//   - last_slot, the last claimed slot, missed_slot, the last one recorded as missed, and
//     missed_until, up to which no slot is caught up (ms);
//   - run:ID, each open run as it started, in JSON; progress:ID, how far it is; and
//     latest, the id of the one that was claimed last;
//   - retry, the retrial that is to come: "SLOT ATTEMPT AT" (ms);
//   - idle, the newest entry of the history while more runs may join it: see [Ledger.ClaimIdle];
//   - result_FIELD, the last finished run with the last line of its output, last_success and fresh (ms), and
//     consecutive_failures;
//   - dead_letters, the number of those in the database; unaccepted, the number of rows that wait to be
//     accepted as the job's;
//   - known, the time when a leader first had the job, if it had never run by then (ms);
//   - paused_reason, paused_at and paused_until (ms), the last if the pause has an end;
//     pause_began and pause_ended (ms), of the last pause that has ended;
//   - refused_id and refused_reason, of the last manual run that was refused, and
//     cancelled_id and cancelled, of the last order to cancel runs;
//   - operation, how the last verification or backfill stands, operation_id and operation_epoch, and
//     verified, how the last verification ended.
//
// The stream {K}:job:NAME:runs is its history: an entry of FIELDs for each finished run,
// and one for missed slots that follow one another.
//
// The hash {K}:control has run:NAME, an order to run a job, cancel:NAME, one to cancel
// its runs, operation:NAME, a verification or backfill that is not over, and the pause of all jobs as jobs_paused_reason and so on.
type Ledger struct {
	store   *redisconn.Store
	keys    script.Keys
	options LedgerOptions
	fence   string // the key by which scripts verify the leader
}

var _ job.Ledger = (*Ledger)(nil)

// LedgerOptions are the election of a ledger and the limits of its history.
type LedgerOptions struct {
	LockKey string
	// Format of the lock; String unless set.
	Format script.Format
	// ByEpoch: the lock is on the masters of a quorum, not in this store, so a claim cannot
	// read it. A term is over for the ledger once a later one has claimed: the hash {K}:fence
	// has the highest epoch of a claim.
	ByEpoch bool
	// Keep is the maximum number of history entries per job. Default: 200.
	Keep int
	// MaxAge is their maximum age. Default: unlimited.
	MaxAge time.Duration
}

// NewLedger makes the ledger of an election.
func NewLedger(store *redisconn.Store, o LedgerOptions) *Ledger {
	if o.Keep <= 0 {
		o.Keep = defaultKeep
	}
	l := &Ledger{store: store, keys: script.KeysOf(o.LockKey), options: o}
	l.fence = l.keys.Lock()
	if o.ByEpoch {
		l.fence = l.keys.Fence()
	}
	return l
}

// Standings implements job.Ledger.
func (l *Ledger) Standings(ctx context.Context, jobs []string) (map[string]job.Standing, error) {
	states, err := l.Jobs(ctx, jobs)
	if err != nil {
		return nil, err
	}
	standings := make(map[string]job.Standing, len(states))
	for _, s := range states {
		standing := job.Standing{Last: s.LastSlot, Retry: s.Retry}
		if s.MissedUntil.After(standing.Last) {
			standing.Last = s.MissedUntil
		}
		for _, r := range s.Running {
			standing.Open = append(standing.Open, r.Record)
		}
		if !standing.Last.IsZero() || standing.Retry != nil || len(standing.Open) > 0 {
			standings[s.Job] = standing
		}
	}
	return standings, nil
}

// Finish implements job.Ledger. It may be called again after a lost reply: a run is recorded
// once. It does not verify the lock: a deposed leader still records the results of its runs.
func (l *Ledger) Finish(ctx context.Context, rec job.Record) error {
	pause, retry, counts := "", "", "1"
	if rec.NoFailure {
		counts = "0"
	}
	if rec.Pauses {
		pause = "by baton: " + clipError(rec.Error)
	}
	if !rec.RetryAt.IsZero() {
		retry = fmt.Sprintf("%d %d", rec.Attempt+1, rec.RetryAt.UnixMilli())
	}
	args := []any{l.keys.Job(rec.Job), l.keys.Runs(rec.Job), l.options.Keep, l.options.MaxAge.Milliseconds(),
		rec.ID, string(rec.State), rec.Finished.UnixMilli(), pause, rec.Slot.UnixMilli(), retry, counts}
	args = append(append(args, startFields(rec)...), endFields(rec)...)
	if _, err := l.script(ctx, finishScript, args); err != nil {
		return fmt.Errorf("record the end of run %s of job %q: %w", rec.ID, rec.Job, err)
	}
	return nil
}

// Miss implements job.Ledger.
func (l *Ledger) Miss(ctx context.Context, t job.Term, m job.Missed) error {
	first, after := m.First, any("")
	if first.IsZero() {
		first = m.Slot
	}
	if !m.After.IsZero() {
		after = m.After.UnixMilli()
	}
	what := ""
	if m.Err != nil {
		what = clipError(m.Err.Error())
	}
	reply, err := redis.Strings(l.script(ctx, missScripts.of(l.options), []any{
		l.fence, l.keys.Job(m.Job), l.keys.Runs(m.Job), t.Owner, t.Epoch, l.options.Keep, l.options.MaxAge.Milliseconds(),
		string(m.Reason), m.Count, first.UnixMilli(), m.Slot.UnixMilli(), after,
		"node", t.NodeID, "owner", t.Owner, "epoch", t.Epoch, "error", what,
	}))
	switch {
	case err != nil:
		return fmt.Errorf("record missed slots of job %q: %w", m.Job, err)
	case reply[0] == "not_leader":
		return fmt.Errorf("record missed slots of job %q: %w (%q has owner %q)", m.Job, job.ErrNotLeader, l.fence, reply[1])
	case reply[0] == "taken":
		return fmt.Errorf("record missed slots of job %q: %w: a slot was claimed", m.Job, job.ErrSlotTaken)
	case reply[0] == "future":
		return fmt.Errorf("record missed slots of job %q: %w: by %s ms of redis' time; is this host's clock right? Check its time "+
			"synchronisation", m.Job, job.ErrAhead, reply[1])
	}
	return nil
}

func (l *Ledger) script(ctx context.Context, s *redis.Script, args []any) (any, error) {
	return l.store.Run(ctx, l.keys.Lock(), func(c redis.Conn) (any, error) { return s.DoContext(ctx, c, args...) })
}
