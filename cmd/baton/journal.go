package main

import (
	"fmt"
	"io"
	"os"
	"syscall"

	"go.uber.org/zap/zapcore"
)

// toJournal reports whether w is the connection to the journal that systemd has made for this process. It also checks the file, because the
// variable JOURNAL_STREAM alone does not prove this: a shell in a service inherits the variable and may write to another file.
func toJournal(w io.Writer, getenv func(string) (string, bool)) bool {
	stream, _ := getenv("JOURNAL_STREAM")
	f, ok := w.(*os.File)
	if !ok || stream == "" {
		return false
	}
	info, err := f.Stat()
	if err != nil {
		return false
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && stream == fmt.Sprintf("%d:%d", s.Dev, s.Ino)
}

// prioritized returns a zap core that writes the priority at the beginning of each line. The journal removes the priority from the line,
// and uses it for commands such as "journalctl -p warning".
func prioritized(encoder zapcore.Encoder, w zapcore.WriteSyncer, level zapcore.LevelEnabler) zapcore.Core {
	of := func(priority string, here func(zapcore.Level) bool) zapcore.Core {
		return zapcore.NewCore(encoder, zapcore.AddSync(prefixed{w, priority}),
			levels(func(l zapcore.Level) bool { return here(l) && level.Enabled(l) }))
	}
	return zapcore.NewTee(
		of("<7>", func(l zapcore.Level) bool { return l < zapcore.InfoLevel }),
		of("<6>", func(l zapcore.Level) bool { return l == zapcore.InfoLevel }),
		of("<4>", func(l zapcore.Level) bool { return l == zapcore.WarnLevel }),
		of("<3>", func(l zapcore.Level) bool { return l > zapcore.WarnLevel }),
	)
}

type levels func(zapcore.Level) bool

func (f levels) Enabled(l zapcore.Level) bool { return f(l) }

// prefixed writes a prefix before each line of the log. It writes the prefix and the line in one call.
type prefixed struct {
	to     io.Writer
	prefix string
}

func (p prefixed) Write(line []byte) (int, error) {
	n, err := p.to.Write(append([]byte(p.prefix), line...))
	return max(n-len(p.prefix), 0), err
}
