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

// fencedScript is a script in several forms, one for each way of verifying the leader.
type fencedScript struct{ byString, byRedisson, byEpoch *redis.Script }

func fencedScripts(keys int, name string) fencedScript {
	return fencedScript{
		byString:   redis.NewScript(keys, script.String.Lua()+ledgerLua("claim_by_lock", name)),
		byRedisson: redis.NewScript(keys, script.Redisson.Lua()+ledgerLua("claim_by_lock", name)),
		byEpoch:    redis.NewScript(keys, ledgerLua("claim_by_epoch", name)),
	}
}

func (f fencedScript) of(o LedgerOptions) *redis.Script {
	switch {
	case o.ByEpoch:
		return f.byEpoch
	case o.Format == script.Redisson:
		return f.byRedisson
	}
	return f.byString
}

// ledgerScript makes a script from the Lua code that all scripts of the ledger share, and from the file named part.
func ledgerScript(keys int, part string) *redis.Script {
	return redis.NewScript(keys, ledgerLua(part))
}

// ledgerLua returns the Lua code that all scripts of the ledger share, followed by the files named parts.
func ledgerLua(parts ...string) string {
	return redisconn.Lua(luaFiles, append([]string{"job_lib"}, parts...)...)
}

// defaultKeep is the number of history entries per job if none is configured.
const defaultKeep = 200

// Ledger records started slots and the results of runs. It implements job.Ledger, and reads the history for status pages.
//
// The hash {K}:job:NAME has the state of a job:
//   - begun, the first slot that was ever claimed (ms);
//   - last_slot, the last claimed slot, missed_slot, the last slot recorded as missed, and missed_until (ms): no slot up to that time
//     is caught up;
//   - run:ID, each open run as it started, in JSON; progress:ID, its progress; and latest, the id of the run that was claimed last;
//   - retry, the pending retrial: "SLOT ATTEMPT AT" (ms);
//   - idle, the newest entry of the history while more runs may join it: see [Ledger.ClaimIdle];
//   - result_FIELD, the last finished run with the last line of its output, last_success and fresh (ms), and
//     consecutive_failures;
//   - dead_letters, the number of dead letters in the database; unaccepted, the number of rows that wait to be accepted as the job's;
//   - known, the time when a leader first had the job, if it had never run by then (ms);
//   - paused_reason, paused_at and paused_until (ms), the last if the pause has an end;
//     pause_began and pause_ended (ms), of the last pause that has ended;
//   - refused_id and refused_reason, of the last manual run that was refused, and
//     cancelled_id and cancelled, of the last order to cancel runs;
//   - operation, the state of the last verification or backfill, operation_id and operation_epoch, and verified, the result of the last
//     verification;
//   - verify_until (ms): every slot of a scheduled verification before this time is ordered.
//
// The string {K}:job:NAME:preview is the progress of a preview of all keys that has not ended. It expires.
//
// The stream {K}:job:NAME:runs is its history, which has an entry with the FIELDs of each finished run, and one entry for
// consecutive missed slots.
//
// The hash {K}:control has orders for the job. run:NAME orders to run it, cancel:NAME orders to cancel its runs, and operation:NAME is
// a verification or backfill that has not ended. The hash also has the pause of all jobs, as jobs_paused_reason and so on.
type Ledger struct {
	store   *redisconn.Store
	keys    script.Keys
	options LedgerOptions
	fence   string // the key by which scripts verify the leader
}

var _ job.Ledger = (*Ledger)(nil)

// LedgerOptions name the election of a ledger and limit its history.
type LedgerOptions struct {
	LockKey string
	// Format is the format of the lock. Default: String.
	Format script.Format
	// ByEpoch means that the lock is on the masters of a quorum. The ledger's store does not have the lock, so a claim cannot read the
	// lock. The ledger then considers a term as ended when a later term has made a claim. For this purpose the hash {K}:fence has the
	// highest epoch of a claim.
	ByEpoch bool
	// Keep is the maximum number of history entries per job. Default: 200.
	Keep int
	// MaxAge is the maximum age of history entries. Default: unlimited.
	MaxAge time.Duration
}

// NewLedger returns the ledger of an election.
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

// ResumeStates implements job.Ledger.
func (l *Ledger) ResumeStates(ctx context.Context, jobs []string) (map[string]job.ResumeState, error) {
	states, err := l.Jobs(ctx, jobs)
	if err != nil {
		return nil, err
	}
	standings := make(map[string]job.ResumeState, len(states))
	for _, s := range states {
		standing := job.ResumeState{Last: s.LastSlot, Retry: s.Retry}
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

// Finish implements job.Ledger. It may be called again after a lost reply, because it records a run only once. It does not verify
// the lock, because a deposed leader must still record the results of its runs.
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
		return fmt.Errorf("record missed slots of job %q: %w: the difference is %s ms; is this host's clock right? Check its time "+
			"synchronisation", m.Job, job.ErrAhead, reply[1])
	}
	return nil
}

func (l *Ledger) script(ctx context.Context, s *redis.Script, args []any) (any, error) {
	return l.store.Run(ctx, l.keys.Lock(), func(c redis.Conn) (any, error) { return s.DoContext(ctx, c, args...) })
}
