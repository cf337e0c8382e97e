package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"baton/cmd/baton/internal/cmdline"
	"baton/cmd/baton/internal/show"
	"baton/internal/diagnose"
	"baton/internal/text"
)

// watch implements "baton status --watch", which shows the state repeatedly.
type watch struct {
	sheet *show.Sheet
	size  func() (width, height int) // nil if the output is no terminal
	out   show.Output
	every time.Duration
	fetch func(context.Context) (diagnose.Snapshot, error)

	shown  diagnose.Snapshot // the last state that was read
	seen   bool
	seenAt time.Time
	err    error     // why no newer state was read
	errAt  time.Time // when the error began
	asking time.Time // when the open request was sent
}

func newWatch(cmd *cobra.Command, e cmdline.Env, out show.Output, every time.Duration,
	fetch func(context.Context) (diagnose.Snapshot, error),
) *watch {
	w := &watch{sheet: show.NewSheet(cmd, e.Getenv, e.Stdout), out: out, every: max(every, 100*time.Millisecond), fetch: fetch}
	if term, _ := e.Getenv("TERM"); !out.Data() && term != "dumb" {
		w.size, _ = show.TerminalSize(e.Stdout)
	}
	return w
}

// answer is the result of a request for the state.
type answer struct {
	s   diagnose.Snapshot
	err error
}

// run shows the state until ctx ends. It shows the first state immediately.
func (w *watch) run(ctx context.Context) error {
	if w.size == nil {
		return w.log(ctx)
	}
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)
	// The terminal's alternate screen is used, without a cursor, so that the text on the normal screen is visible again afterwards.
	if _, err := io.WriteString(w.sheet, "\x1b[?1049h\x1b[?25l\x1b[2J"); err != nil {
		return err
	}
	err := w.redraw(ctx, resized)
	_, back := io.WriteString(w.sheet, "\x1b[?25h\x1b[?1049l")
	if err == nil && back == nil && w.seen { // print the last state on the normal screen
		w.sheet.Width, _ = w.size()
		err = printStatus(w.sheet, w.state(time.Now()))
	}
	if err == nil {
		err = back
	}
	return err
}

// redraw draws the screen at once and never waits for an answer, so that the user sees that Redis does not answer.
func (w *watch) redraw(ctx context.Context, resized <-chan os.Signal) error {
	answers := make(chan answer, 1)
	ask := func() {
		w.asking = time.Now()
		go func() {
			s, err := w.fetch(ctx)
			answers <- answer{s, err}
		}()
	}
	ask()
	ticker := time.NewTicker(w.every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case a := <-answers:
			if ctx.Err() != nil {
				return nil
			}
			w.asking = time.Time{}
			w.note(a)
		case <-ticker.C:
			if w.asking.IsZero() {
				ask()
			}
		case <-resized:
		}
		if err := w.frame(time.Now()); err != nil {
			return err
		}
	}
}

func (w *watch) note(a answer) {
	switch {
	case a.err == nil:
		w.shown, w.seen, w.seenAt, w.err = a.s, true, time.Now(), nil
	case w.err == nil:
		w.errAt = time.Now()
		fallthrough
	default:
		w.err = a.err
	}
}

// state returns the last state that was read, without the parts that may no longer be true.
func (w *watch) state(now time.Time) diagnose.Snapshot {
	if w.err == nil {
		return w.shown
	}
	s := w.shown
	s.Age, s.Error = text.Seconds(now.Sub(w.seenAt)), w.err.Error()
	return diagnose.Aged(s)
}

// frame overwrites the old frame line by line, so that the screen does not flicker.
func (w *watch) frame(now time.Time) error {
	width, height := w.size()
	w.sheet.Width = width
	var text strings.Builder
	text.WriteString(string(w.headline(now)) + "\n\n")
	if w.seen {
		// Outdated data has no colours, because old data must not be shown in green.
		frame := show.SheetOf(&text, w.sheet.Colour && w.err == nil && !w.slow(now), width)
		frame.Live = true
		if err := printStatus(frame, w.state(now)); err != nil {
			return err
		}
	}
	lines := strings.Split(strings.TrimRight(text.String(), "\n"), "\n")
	if more := len(lines) - height; more > 0 && height > 1 {
		lines = append(lines[:height-1], string(show.Paint(w.sheet, show.Dim, fmt.Sprintf("… %d more lines", more+1))))
	}
	for i, line := range lines {
		lines[i] = show.CutWidth(line, width) + "\x1b[K"
	}
	// Terminals that support synchronized output show the whole frame at once.
	_, err := io.WriteString(w.sheet, "\x1b[?2026h\x1b[H"+strings.Join(lines, "\r\n")+"\x1b[J\x1b[?2026l")
	return err
}

// slow reports whether the pending request takes longer than expected.
func (w *watch) slow(now time.Time) bool {
	return !w.asking.IsZero() && now.Sub(w.asking) >= time.Second
}

// clockShown is the format of a time on the current day.
const clockShown = "15:04:05 -07:00"

// headline returns the time, and the reason why the current state cannot be shown. It puts the age of the shown state first, because a
// terminal cuts off a long error.
func (w *watch) headline(now time.Time) show.SafeText {
	clock := now.Local().Format(clockShown)
	was := show.SafeText("")
	if w.seen {
		was = show.SafeText("; below is how it was at " + w.shown.Now.Local().Format(clockShown))
	}
	switch {
	case w.err != nil:
		return show.Paint(w.sheet, show.Bad, fmt.Sprintf("%s  not known for %s%s: %s", clock,
			text.Duration(now.Sub(w.errAt).Truncate(time.Second)), was, show.FirstLine(w.err.Error())))
	case w.slow(now):
		return show.Paint(w.sheet, show.Uneasy,
			fmt.Sprintf("%s  no answer for %s", clock, text.Duration(now.Sub(w.asking).Truncate(time.Second)))) + was
	}
	return show.Paint(w.sheet, show.Dim, fmt.Sprintf("%s  every %s; Ctrl-C ends", clock, text.Duration(w.every)))
}

// log prints the states one below the other, for an output that cannot be redrawn.
func (w *watch) log(ctx context.Context) error {
	ticker := time.NewTicker(w.every)
	defer ticker.Stop()
	for {
		s, err := w.fetch(ctx)
		if ctx.Err() != nil {
			return nil
		}
		var frame strings.Builder
		now := time.Now().Format(clockShown)
		if err != nil && w.out.Data() {
			err = w.out.Print(&frame, map[string]string{"error": err.Error()}, nil)
		} else if err != nil {
			err = show.Say(&frame, "%s  %v\n", now, err)
		} else {
			err = w.out.Print(&frame, s, func(io.Writer) error {
				_ = show.Say(&frame, "%s\n", now) // a Builder accepts any text
				err := printStatus(show.SheetOf(&frame, w.sheet.Colour, 0), s)
				frame.WriteString("\n")
				return err
			})
		}
		if err == nil {
			_, err = io.WriteString(w.sheet, frame.String())
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}
