package redisledger

import (
	"context"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/redisconn"
)

// What is kept of what commands print.
const (
	// KeepOutput is how many bytes of a run, its last; a quarter more may be there for a while.
	KeepOutput = 256 << 10
	// keepOutputs is of how many runs of a job.
	keepOutputs = 20
	// readOutput bounds one answer.
	readOutput = 512 << 10
)

var (
	outputScript     = redis.NewScript(2, redisconn.Lua(luaFiles, "job_output"))
	outputReadScript = redis.NewScript(1, redisconn.Lua(luaFiles, "job_output_read"))
)

// Output is a piece of what a run has printed.
type Output struct {
	Job, RunID string
	Offset     int64 // of its first byte, in all that the run has printed
	Text       []byte
	MaxAge     time.Duration // how long it is kept after the last piece
}

// AppendOutput keeps a piece of what a run prints. Asked again with bytes that are
// there already it adds those that are not; where bytes were left out, those before
// them are dropped. It does not ask who leads: only the run itself writes there.
func (l *Ledger) AppendOutput(ctx context.Context, o Output) error {
	args := []any{
		l.keys.Output(o.Job, o.RunID), l.keys.Outputs(o.Job), o.RunID, o.Offset, o.Text, KeepOutput, keepOutputs,
		max(o.MaxAge, time.Minute).Milliseconds(), time.Now().UnixMilli(),
	}
	_, err := l.store.Run(ctx, l.keys.Lock(), func(c redis.Conn) (any, error) {
		old, err := redis.Strings(outputScript.DoContext(ctx, c, args...))
		if err != nil || len(old) == 0 {
			return nil, err
		}
		drop := make([]any, len(old))
		for i, id := range old {
			drop[i] = l.keys.Output(o.Job, id)
		}
		return redis.DoContext(c, ctx, "UNLINK", drop...) // if not, they expire
	})
	if err != nil {
		return fmt.Errorf("keep the output of run %s of job %q: %w", o.RunID, o.Job, err)
	}
	return nil
}

// ReadOutput returns what is kept of a run's output from an offset on: it begins at
// Offset, which is later if what was asked for is no longer there. Without any Text
// there is nothing from there on.
func (l *Ledger) ReadOutput(ctx context.Context, job, runID string, from int64) (Output, error) {
	o := Output{Job: job, RunID: runID, Offset: from}
	reply, err := redis.Values(l.script(ctx, outputReadScript, []any{l.keys.Output(job, runID), from, readOutput}))
	if err == nil {
		_, err = redis.Scan(reply, &o.Offset, &o.Text)
	}
	if err != nil {
		return Output{}, fmt.Errorf("read the output of run %s of job %q: %w", runID, job, err)
	}
	return o, nil
}
