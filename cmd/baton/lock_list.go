package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"baton/cmd/baton/internal/cmdline"
	"baton/cmd/baton/internal/show"
	"baton/internal/lockcmd"
	"baton/internal/text"
)

// inspect implements the flags --list and --break of "baton lock".
func (f *lockFlags) inspect(cmd *cobra.Command, e cmdline.Env) error {
	c, err := cmdline.LoadConfig(cmd, e)
	if err != nil {
		return err
	}
	if f.list {
		held, err := lockcmd.List(cmd.Context(), c)
		if err != nil && len(held) == 0 {
			return err
		}
		printed := f.out.Print(e.Stdout, held, func(w io.Writer) error { return printLocks(w, held, time.Now()) })
		return errors.Join(printed, err)
	}
	broken, err := lockcmd.Break(cmd.Context(), c, f.breakUp, breaker(f.reason))
	switch {
	case errors.Is(err, lockcmd.ErrNotHeld):
		return cmdline.WithCode(cmdline.ExitNoLeader, err)
	case errors.Is(err, lockcmd.ErrUsage):
		return cmdline.UsageError(err)
	case err != nil:
		return err
	}
	return f.out.Print(e.Stdout, broken, func(w io.Writer) error {
		from := broken.NodeID
		if from == "" {
			from = fmt.Sprintf("a program that is not baton (owner %s)", broken.Owner)
		}
		return show.Say(w, "%s: taken away from %s; free in %s\n", broken.Name, from,
			text.Duration(broken.FreeIn.Duration()))
	})
}

// breaker returns a text that says who breaks a lock and why, for the event history.
func breaker(reason string) string {
	by := cmdline.OrderedBy(reason)
	if host, err := os.Hostname(); err == nil {
		by += " (on " + host + ")"
	}
	return by
}

func printLocks(out io.Writer, held []lockcmd.State, now time.Time) error {
	if len(held) == 0 {
		return show.Say(out, "no locks are held\n")
	}
	w := show.NewTable(out)
	p := func(format string, args ...any) { _ = show.Say(w, format, args...) } // Flush returns a write error
	p("LOCK\tNODE\tEPOCH\tFOR\tLEASE LEFT\tOWNER\n")
	for _, l := range held {
		node, epoch, since := l.NodeID, show.Epoch(l.Epoch), text.Duration(now.Sub(l.Since))
		switch {
		case l.Forbidden:
			p("%s\t%s\t-\t-\t-\t-\n", l.Name, notAllowed)
			continue
		case l.Foreign:
			node, epoch, since = "(not baton)", "-", "-"
		}
		p("%s\t%s\t%s\t%s\t%s\t%s\n", l.Name, node, epoch, since, leaseColumn(l.LeaseLeft), l.Owner)
	}
	return w.Flush()
}
