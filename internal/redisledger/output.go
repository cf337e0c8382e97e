package redisledger

import (
	"context"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/redisconn"
)

// These constants limit how much output of commands the ledger keeps and reads.
const (
	// KeepOutput is the number of bytes that are kept at the end of each run's output. For a short time the ledger may keep a quarter
	// more.
	KeepOutput = 256 << 10
	// keepOutputs is the number of runs of a job whose output is kept.
	keepOutputs = 20
	// readOutput is the maximum size of one reply.
	readOutput = 512 << 10
)

var (
	outputScript     = redis.NewScript(2, redisconn.Lua(luaFiles, "job_output"))
	outputReadScript = redis.NewScript(1, redisconn.Lua(luaFiles, "job_output_read"))
)

// Output is a piece of a run's output.
type Output struct {
	Job, RunID string
	Offset     int64 // the position of the first byte in the whole output
	Text       []byte
	MaxAge     time.Duration // kept for this time after the last piece
}

// AppendOutput appends a piece of a run's output. It skips bytes that are stored already. If bytes are missing before the piece, it
// drops the output before the gap. It does not verify the leader, because only the run itself writes there.
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
		return redis.DoContext(c, ctx, "UNLINK", drop...) // if this fails, they expire
	})
	if err != nil {
		return fmt.Errorf("store the output of run %s of job %q: %w", o.RunID, o.Job, err)
	}
	return nil
}

// ReadOutput returns the kept output of a run, beginning at the offset in the argument from. If the output at this offset is no
// longer kept, the result begins at a later offset, which is in the result's Offset. An empty Text means the end.
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
