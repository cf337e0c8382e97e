package daemon

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"baton/internal/command"
	"baton/internal/elector"
	"baton/internal/job"
)

// command is the work of a command job in a term.
func (t task) command(term *elector.Term) job.Func {
	return func(ctx context.Context, r job.Run) (job.Result, error) {
		argv := t.config.Command
		if t.config.Shell {
			argv = []string{"/bin/sh", "-c", argv[0]}
		}
		path, err := command.Find(argv[0])
		if err != nil {
			return job.Result{}, err
		}
		env := append(os.Environ(), "BATON_JOB="+r.Job, "BATON_RUN_ID="+r.ID, "BATON_SLOT="+r.Slot.UTC().Format("2006-01-02T15:04:05.999Z07:00"),
			"BATON_EPOCH="+strconv.FormatInt(r.Term.Epoch, 10), "BATON_NODE_ID="+r.Term.NodeID, "BATON_TRIGGER="+string(r.Trigger),
			"BATON_ATTEMPT="+strconv.Itoa(r.Attempt), "BATON_OWNER="+r.Term.Owner, "BATON_LOCK_KEY="+t.config.Lock)
		for name, value := range t.config.Env {
			env = append(env, name+"="+value)
		}
		done, err := command.Run(ctx, command.Spec{
			Path: path, Argv: argv, Env: env, Dir: t.config.WorkingDir, Warden: []string{"/proc/self/exe", "warden"},
			Grace: t.config.Grace, Until: term.UntilHardStop,
		})
		if err == nil && done.ExitCode() != 0 {
			err = fmt.Errorf("%v", done)
		}
		return job.Result{}, err
	}
}
