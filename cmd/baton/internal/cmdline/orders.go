package cmdline

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/user"
	"strings"

	"baton/cmd/baton/internal/show"
	"baton/internal/operate"
)

// OrderedBy returns a text for the event history. The text names the user who gives an order, and the reason for the order.
func OrderedBy(reason string) string {
	return "asked " + operate.Order{By: UserName(), Reason: reason}.Signature()
}

// UserName returns the name of the user who runs the command.
func UserName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "somebody"
}

// Confirm asks the person at the terminal to confirm. Ctrl-C means no.
func Confirm(ctx context.Context, e Env, question string) error {
	answer, asked, err := Ask(ctx, e, question+" [y/N] ")
	switch {
	case err != nil:
		return err
	case !asked:
		return UsageError(errors.New("add --yes, because there is no terminal for the question"))
	}
	switch strings.ToLower(answer) {
	case "y", "yes":
		return nil
	}
	return WithCode(ExitFailure, errors.New("nothing was changed"))
}

// Ask asks the person at the terminal for a line, and returns the line without surrounding white space. If there is no terminal, the result
// asked is false. Ctrl-C returns an error.
func Ask(ctx context.Context, e Env, question string) (answer string, asked bool, err error) {
	in, ok := e.Stdin.(*os.File)
	if !ok || !show.IsTerminal(in) {
		return "", false, nil
	}
	if err := show.Say(e.Stderr, "%s", question); err != nil {
		return "", false, err
	}
	read := make(chan struct{})
	go func() { // without an answer, this goroutine ends with the process
		defer close(read)
		answer, err = bufio.NewReader(in).ReadString('\n')
	}()
	select {
	case <-read:
	case <-ctx.Done():
		_ = show.Say(e.Stderr, "\n")
		return "", false, WithCode(ExitFailure, errors.New("nothing was changed"))
	}
	if errors.Is(err, io.EOF) {
		return strings.TrimSpace(answer), answer != "", nil // an input without an answer is a device such as /dev/null
	}
	return strings.TrimSpace(answer), true, err
}

// JobError makes the error about an unknown job a usage error. It returns all other errors unchanged.
func JobError(err error) error {
	if errors.Is(err, operate.ErrNoJob) {
		return UsageError(err)
	}
	return err
}

// idShown is the number of characters of an id that are printed. These characters are more than enough to distinguish ids.
const idShown = 12

// ShortID returns the first characters of an id, for printing.
func ShortID(id string) string { return id[:min(idShown, len(id))] }
