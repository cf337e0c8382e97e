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
	// outputKept is how many bytes of a command's output its error quotes.
	outputKept = 512
	// closeWithin is how long a background process of the command may keep its output open.
	closeWithin = time.Second
)

// Command runs a program for each event, with the event as JSON on its standard input.
// It has delivered it if it ends with exit code 0.
//
// It has no warden as a job's command has: a job's command must be dead before the lease can have ended, since the next leader may start
// the same one. This one changes no data that the lease guards; it may run after the lock is gone, and does when it reports the last run
// of a term. If this process is killed, the command ends on its own.
type Command struct {
	argv   []string
	env    []string
	filter func() Filter
}

// Filter passes on the part of a command's output that may be reported; last marks the end of the output.
type Filter func(text []byte, last bool, out func([]byte))

// NewCommand runs argv with that environment.
func NewCommand(argv, env []string) *Command { return &Command{argv: argv, env: env} }

// Filter filters the command's output, with a new filter for each event, before it is reported.
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
	case err == nil, errors.Is(err, exec.ErrWaitDelay): // it has ended well, and left a process running
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
