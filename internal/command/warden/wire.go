package warden

import (
	"bufio"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"
)

// Order is a message from baton to the warden, one message on each line. The first order contains the Setup.
type Order struct {
	Setup  *Setup
	Until  Instant // all processes must be dead at this time
	Signal int     // pass it on
	Stop   Instant // SIGTERM is sent now, SIGKILL at this time
}

// Setup describes the command. It comes through the socket, because a warden may have started before its command was chosen.
type Setup struct {
	Path  string
	Argv  []string
	Env   []string
	Dir   string // "" is the current one
	Grace time.Duration
	Drain time.Duration // the part of the time left until all processes must be dead; 0: Grace
	Leave bool
	// Group is the process group of the command: the terminal's group, so that the terminal's keys reach the command as if there were no
	// baton. 0 means a new group.
	Group int
	// StopSignal is the signal that asks the command to end; 0 means SIGTERM.
	StopSignal int
	Settings   Settings
}

// Report is a message from the warden.
type Report struct {
	Pid    int     // the command has started
	Errno  int     // the command cannot be started
	Step   Step    // the setting that the kernel refused
	Result *Result // the command has ended
}

// Result says how a command ended.
type Result struct {
	Code, Signal int
	Stopped      bool
	Rest         int
}

// Instant is a time of CLOCK_BOOTTIME in nanoseconds. All processes of a machine share this clock. Zero means no time.
type Instant int64

// Add returns the instant that is d later.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d) }

// Sub returns the time since another instant.
func (i Instant) Sub(j Instant) time.Duration { return time.Duration(i - j) }

func earlier(a, b Instant) Instant {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// Write sends the order.
func (o Order) Write(w io.Writer) error {
	var l line
	l.number(int64(o.Until), int64(o.Signal), int64(o.Stop))
	if s := o.Setup; s != nil {
		settings := s.Settings.numbers()
		l.number(int64(s.Grace), int64(s.Drain), flag(s.Leave), int64(s.Group), int64(s.StopSignal))
		l.number(int64(len(s.Argv)), int64(len(settings)))
		l.number(settings...)
		l.words([]string{s.Path, s.Dir}, s.Argv, s.Env)
	}
	return l.write(w)
}

func parseOrder(text string) (Order, error) {
	n, rest, err := numbers(text, 3)
	if err != nil {
		return Order{}, err
	}
	o := Order{Until: Instant(n[0]), Signal: int(n[1]), Stop: Instant(n[2])}
	if rest == "" {
		return o, nil
	}
	const fixed = 7
	if n, rest, err = numbers(rest, fixed); err != nil {
		return Order{}, err
	}
	settings, rest, err := readSettings(rest, n[6])
	if err != nil {
		return Order{}, err
	}
	words, err := unquoted(rest)
	const placed = 2 // the path and the directory
	if err != nil || n[5] < 1 || int64(len(words)-placed) < n[5] {
		return Order{}, errWire
	}
	argv, env := words[placed:placed+n[5]], words[placed+n[5]:]
	o.Setup = &Setup{
		Grace: time.Duration(n[0]), Drain: time.Duration(n[1]), Leave: n[2] != 0, Group: int(n[3]),
		StopSignal: int(n[4]), Settings: settings,
		Path: words[0], Dir: words[1], Argv: argv, Env: env,
	}
	return o, nil
}

// unquoted reads quoted words. There is a space before each word except the first.
func unquoted(text string) (words []string, err error) {
	for text = " " + text; text != ""; {
		quoted, err := strconv.QuotedPrefix(strings.TrimPrefix(text, " "))
		if err != nil || text[0] != ' ' {
			return nil, errWire
		}
		word, err := strconv.Unquote(quoted)
		if err != nil {
			return nil, errWire
		}
		words, text = append(words, word), text[1+len(quoted):]
	}
	return words, nil
}

func (r Report) write(w io.Writer) error {
	var l line
	l.number(int64(r.Pid), int64(r.Errno), int64(r.Step))
	if s := r.Result; s != nil {
		l.number(int64(s.Code), int64(s.Signal), flag(s.Stopped), int64(s.Rest))
	}
	return l.write(w)
}

func parseReport(text string) (Report, error) {
	n, rest, err := numbers(text, 3)
	if err != nil {
		return Report{}, err
	}
	r := Report{Pid: int(n[0]), Errno: int(n[1]), Step: Step(n[2])}
	if rest == "" {
		return r, nil
	}
	n, _, err = numbers(rest, 4)
	if err == nil {
		r.Result = &Result{Code: int(n[0]), Signal: int(n[1]), Stopped: n[2] != 0, Rest: int(n[3])}
	}
	return r, err
}

// Reports returns a channel with the messages of the warden. The channel is closed when the warden has ended, or at a message that cannot
// be parsed.
func Reports(r io.Reader) <-chan Report { return receive(r, parseReport) }

// longestLine is a size in bytes that has room for the longest command line that the kernel accepts, in quotes.
const longestLine = 16 << 20

// receive returns a channel with the messages in r. The channel is closed at the end of r, or at a message that cannot be parsed.
func receive[T any](r io.Reader, parse func(string) (T, error)) <-chan T {
	messages := make(chan T)
	go func() {
		defer close(messages)
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, longestLine)
		for lines.Scan() {
			m, err := parse(lines.Text())
			if err != nil {
				return
			}
			messages <- m
		}
	}()
	return messages
}

// line is an unfinished message: words that each end with a space.
type line []byte

func (l *line) number(ns ...int64) {
	for _, n := range ns {
		*l = append(strconv.AppendInt(*l, n, 10), ' ')
	}
}

// words writes words in quotes, with a space before each word except the first.
func (l *line) words(lists ...[]string) {
	space := ""
	for _, list := range lists {
		for _, word := range list {
			*l = strconv.AppendQuote(append(*l, space...), word)
			space = " "
		}
	}
}

func (l line) write(w io.Writer) error {
	_, err := w.Write(append(l, '\n'))
	return err
}

var errWire = errors.New("warden: unexpected message from the other process")

// numbers parses the words at the beginning of text as numbers. The argument many is the number of words. numbers also returns the rest of
// the text.
func numbers(text string, many int) ([]int64, string, error) {
	ns := make([]int64, many)
	for i := range ns {
		word, rest, ok := strings.Cut(text, " ")
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil || !ok {
			return nil, "", errWire
		}
		ns[i], text = n, rest
	}
	return ns, text, nil
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
