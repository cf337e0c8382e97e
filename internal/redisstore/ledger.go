package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/job"
)

var (
	claimByString   = loadClaim("format_string", "claim_by_lock")
	claimByRedisson = loadClaim("format_redisson", "claim_by_lock")
	claimByEpoch    = loadClaim("claim_by_epoch")
	finishScript    = loadScript("job_finish", 2)
)

// loadClaim makes the script that claims a slot, after what tells it who leads.
func loadClaim(parts ...string) *redis.Script {
	var text strings.Builder
	for _, name := range append(parts, "job_claim") {
		text.WriteString(source(name))
	}
	return redis.NewScript(3, text.String())
}

// keepRuns is about how many finished runs of a job its history holds.
const keepRuns = 200

// Ledger remembers, beside the lock, which slots were started and how the runs
// ended: a job.Ledger, and the history for status pages.
//
// The hash {K}:job:NAME has last_slot (ms), the current run as running_FIELD, the
// last finished one as result_FIELD, last_success and fresh (ms), consecutive_failures, the pause
// as paused_reason and paused_at (ms), and the last manual run that was refused as
// refused_id and refused_reason. Requests for manual runs are in {K}:control;
// the stream {K}:job:NAME:runs has one entry of the same FIELDs for each finished run.
type Ledger struct {
	store *Store
	keys  keys
	claim *redis.Script
	fence string // what the claim asks who leads
}

var _ job.Ledger = (*Ledger)(nil)

// LedgerOptions say to which election a ledger belongs.
type LedgerOptions struct {
	LockKey string
	// Format of the lock; String unless set.
	Format Format
	// ByEpoch: the lock is not in this store, but on the masters of a quorum. Then no
	// claim can ask it, and a term is known to be over when a later one has claimed:
	// the hash {K}:fence has the highest epoch that did.
	ByEpoch bool
}

// NewLedger makes the ledger of an election.
func NewLedger(store *Store, o LedgerOptions) *Ledger {
	k := newKeys(o.LockKey)
	l := &Ledger{store: store, keys: k, claim: claimByString, fence: k.lock()}
	switch {
	case o.ByEpoch:
		l.claim, l.fence = claimByEpoch, k.fence()
	case o.Format == Redisson:
		l.claim = claimByRedisson
	}
	return l
}

// Standings implements job.Ledger.
func (l *Ledger) Standings(ctx context.Context, jobs []string) (map[string]job.Standing, error) {
	last, err := l.LastSlots(ctx, jobs)
	standings := make(map[string]job.Standing, len(last))
	for name, slot := range last {
		standings[name] = job.Standing{Last: slot}
	}
	return standings, err
}

// Miss implements job.Ledger.
func (l *Ledger) Miss(context.Context, job.Term, job.Missed) error { return nil }

// LastSlots returns the last claimed slot of each named job.
func (l *Ledger) LastSlots(ctx context.Context, jobs []string) (map[string]time.Time, error) {
	if len(jobs) == 0 {
		return nil, nil
	}
	c, err := l.store.Conn(ctx, l.keys.lock())
	if err != nil {
		return nil, err
	}
	defer c.Close()
	for _, name := range jobs {
		if err := c.Send("HGET", l.keys.job(name), "last_slot"); err != nil {
			return nil, fmt.Errorf("read the last slots: %w", explain(err))
		}
	}
	replies, err := receiveAll(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("read the last slots: %w", explain(err))
	}
	slots := make(map[string]time.Time, len(jobs))
	for i, name := range jobs {
		ms, err := redis.Int64(replies[i], nil)
		if errors.Is(err, redis.ErrNil) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read the last slot of job %q in %q: %w", name, l.keys.job(name), explain(err))
		}
		slots[name] = fromMillis(ms)
	}
	return slots, nil
}

// Claim implements job.Ledger.
func (l *Ledger) Claim(ctx context.Context, r job.Run) error {
	started := job.Record{Run: r, State: job.StateRunning, Started: time.Now()}
	request := ""
	if r.Trigger == job.TriggerManual {
		request = l.keys.request(r.Job)
	}
	args := []any{l.fence, l.keys.job(r.Job), l.keys.control(), r.Term.Owner, r.Slot.UnixMilli(), r.ID, r.Term.Epoch, request}
	reply, err := redis.Strings(l.script(ctx, l.claim, append(args, startFields(started)...)))
	if err != nil {
		return fmt.Errorf("claim slot %s of job %q: %w", r.Slot.Format(time.RFC3339), r.Job, err)
	}
	switch verdict := reply[0]; {
	case verdict == "ok":
		return nil
	case verdict == "paused":
		return fmt.Errorf("claim slot %s of job %q: %w %s", r.Slot.Format(time.RFC3339), r.Job, job.ErrPaused, reply[1])
	case request != "" && verdict == "taken":
		return fmt.Errorf("claim manual run %s of job %q: %w: it was started before, withdrawn, or asked for too long ago", r.ID, r.Job, job.ErrSlotTaken)
	case verdict == "not_leader":
		return fmt.Errorf("claim slot %s of job %q: %w (%q has owner %q)",
			r.Slot.Format(time.RFC3339), r.Job, job.ErrNotLeader, l.fence, reply[1])
	case verdict == "future":
		return fmt.Errorf("claim slot %s of job %q: it is %s ms ahead of Redis' clock; is this host's clock right? Check its time synchronisation",
			r.Slot.Format(time.RFC3339), r.Job, reply[1])
	default: // taken
		return fmt.Errorf("claim slot %s of job %q: %w (last slot in ms: %s)",
			r.Slot.Format(time.RFC3339), r.Job, job.ErrSlotTaken, reply[1])
	}
}

// Finish implements job.Ledger. It may be called again after a lost reply: a run
// is recorded once. It does not ask for the lock: a leader that was deposed shall
// still tell how its run ended.
func (l *Ledger) Finish(ctx context.Context, rec job.Record) error {
	pause := ""
	if rec.Pauses {
		pause = "by baton: " + clipError(rec.Error)
	}
	args := []any{l.keys.job(rec.Job), l.keys.runs(rec.Job), keepRuns, rec.ID, string(rec.State), rec.Finished.UnixMilli(), pause}
	args = append(append(args, startFields(rec)...), endFields(rec)...)
	if _, err := l.script(ctx, finishScript, args); err != nil {
		return fmt.Errorf("record the end of run %s of job %q: %w", rec.ID, rec.Job, err)
	}
	return nil
}

func (l *Ledger) script(ctx context.Context, s *redis.Script, args []any) (any, error) {
	return l.store.run(ctx, l.keys.lock(), func(c redis.Conn) (any, error) { return s.DoContext(ctx, c, args...) })
}
