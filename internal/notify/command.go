package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"baton/internal/notify/service"
)

const (
	// outputKept is how much of what a command prints its error quotes.
	outputKept = 512
	// closeWithin is how long something that the command has left in the background may
	// keep its output open.
	closeWithin = time.Second
)

// Command runs a program for each event, with the event as JSON on its standard input.
// It has delivered it if it ends with exit code 0.
//
// No warden watches over it as over a job's command: that one must be dead before the
// lease can have ended, since the next leader may start the same. This one touches
// nothing that the lease guards; it may well run after the lock is gone, and does when
// it reports the last run of a term. If this process is killed it ends by itself.
type Command struct {
	argv   []string
	env    []string
	filter func() Filter
}

// Filter passes on what may be reported of what a command prints; with last nothing more comes.
type Filter func(text []byte, last bool, out func([]byte))

// NewCommand runs argv with that environment.
func NewCommand(argv, env []string) *Command { return &Command{argv: argv, env: env} }

// Filter has what the command prints go through a filter, a new one for each event, before
// any of it is reported.
func (c *Command) Filter(make func() Filter) *Command {
	c.filter = make
	return c
}

// Send implements [Target]. When ctx ends the program is killed, with all of its process group.
func (c *Command) Send(ctx context.Context, e Event) error {
	text, err := json.Marshal(e)
	if err != nil {
		return service.Refused("encode the event: %v", err)
	}
	output := filtered{to: &tail{most: outputKept}}
	if c.filter != nil {
		output.through = c.filter()
	}
	cmd := exec.CommandContext(ctx, c.argv[0], c.argv[1:]...)
	cmd.Env = c.env
	cmd.Stdin = bytes.NewReader(append(text, '\n'))
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.WaitDelay = closeWithin
	ownGroup(cmd)
	err = cmd.Run()
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay): // it has ended well, and left something running
		return nil
	case ctx.Err() != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		err = errors.New("it did not end in time and was killed")
	case ctx.Err() != nil:
		err = errors.New("it was killed before it had ended")
	}
	if said := output.String(); said != "" {
		return fmt.Errorf("the command failed: %w: %s", err, said)
	}
	return fmt.Errorf("the command failed: %w", err)
}
