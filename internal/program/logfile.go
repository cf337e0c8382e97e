package program

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

const (
	// logPending limits the output that waits for the disk, in bytes.
	logPending = 1 << 20
	// logPatience is the time that the command waits for a disk that accepts no data.
	logPatience = 5 * time.Second
	// logLast is the time that the end of a run waits for the disk.
	logLast = 2 * time.Second
	// logLooked is the time between two checks that the file still has its name.
	logLooked = time.Second
)

// logFile appends output to a file. A full or hanging disk ends the log file, and never the run, because only a separate goroutine writes
// the file. A write may never return, so no caller waits for that goroutine without a limit.
type logFile struct {
	path string
	log  *zap.Logger

	mu      sync.Mutex
	pending []byte
	given   bool          // the file was given up, and nothing more is written
	closing bool          // no more output comes
	changed chan struct{} // buffer of one entry: pending output or closing has changed
	room    chan struct{} // buffer of one entry: there is room for more output
	done    chan struct{}
}

// openLog opens the log file of a job. A rotation may move the file away later.
func openLog(path string, log *zap.Logger) (*logFile, error) {
	file, err := appendTo(path)
	if err != nil {
		return nil, err
	}
	l := &logFile{
		path: path, log: log,
		changed: make(chan struct{}, 1), room: make(chan struct{}, 1), done: make(chan struct{}),
	}
	go l.keepWriting(file)
	return l, nil
}

// appendTo opens a regular file. It does not follow a symbolic link, because otherwise a user with write access to the file's directory
// could make the daemon append to any file.
func appendTo(path string) (*os.File, error) {
	const mode = 0o640
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, mode)
	if errors.Is(err, syscall.ELOOP) {
		return nil, fmt.Errorf("log_file: %s is a symbolic link; name the file itself", path)
	}
	if err != nil {
		return nil, fmt.Errorf("log_file: %w", err)
	}
	if err := regular(file); err != nil {
		return nil, fmt.Errorf("log_file: %w", err)
	}
	return file, nil
}

// appendable explains why no output could be appended to a file. The file may not exist yet.
func appendable(path string) error {
	if path == "" {
		return nil
	}
	dir := filepath.Dir(path)
	if err := enterable("directory of log_file", dir); err != nil {
		return err
	}
	err := unix.Access(path, unix.W_OK)
	if errors.Is(err, os.ErrNotExist) {
		path, err = dir, unix.Access(dir, unix.W_OK)
	}
	if err != nil {
		return fmt.Errorf("log_file: %s cannot be written: %w", path, err)
	}
	return nil
}

// regular closes a file that is not regular, and returns an error.
func regular(file *os.File) error {
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", file.Name())
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	return nil
}

// write accepts a piece of the output. It waits for room in the buffer, at most for the duration logPatience.
func (l *logFile) write(text []byte) {
	patience := time.Now().Add(logPatience)
	for {
		l.mu.Lock()
		fits := len(l.pending) == 0 || len(l.pending)+len(text) <= logPending
		if fits && !l.given {
			l.pending = append(l.pending, text...)
		}
		given := l.given
		l.mu.Unlock()
		if given {
			return
		}
		if fits {
			wake(l.changed)
			return
		}
		select {
		case <-l.room:
		case <-time.After(time.Until(patience)):
			l.giveUp(fmt.Errorf("no output could be written for %v", logPatience))
			return
		}
	}
}

// giveUp reports once why nothing more is written.
func (l *logFile) giveUp(why error) {
	l.mu.Lock()
	before := l.given
	l.given, l.pending = true, nil
	l.mu.Unlock()
	wake(l.room)
	if !before {
		l.log.Warn("the log file of a run is not written any more: the run goes on, and its output is kept in Redis alone",
			zap.String("log_file", l.path), zap.Error(why))
	}
}

// close waits until all output is written, at most for the given duration.
func (l *logFile) close(within time.Duration) {
	l.mu.Lock()
	l.closing = true
	given := l.given
	l.mu.Unlock()
	wake(l.changed)
	if given {
		return // the writer may never return
	}
	select {
	case <-l.done:
	case <-time.After(max(within, 0)):
		l.giveUp(errors.New("the run has ended, but the disk accepts no output"))
	}
}

// keepWriting writes pending output until there is no more output.
func (l *logFile) keepWriting(file *os.File) {
	defer close(l.done)
	defer func() {
		if err := file.Close(); err != nil {
			l.giveUp(err)
		}
	}()
	var looked time.Time
	for {
		l.mu.Lock()
		text, over := l.pending, l.given || l.closing && len(l.pending) == 0
		l.pending = nil
		l.mu.Unlock()
		if over {
			return
		}
		if len(text) == 0 {
			<-l.changed
			continue
		}
		wake(l.room)
		if time.Since(looked) >= logLooked {
			looked = time.Now()
			file = l.current(file)
		}
		if _, err := file.Write(text); err != nil {
			l.giveUp(err)
			return
		}
	}
}

// current returns the file that is now at the log's path. It differs from the file in the argument after a rotation, which moves that file
// away.
func (l *logFile) current(file *os.File) *os.File {
	mine, err := file.Stat()
	if err != nil {
		return file
	}
	if there, err := os.Lstat(l.path); err == nil && os.SameFile(mine, there) {
		return file
	}
	next, err := appendTo(l.path)
	if err != nil {
		return file // the old file is still usable
	}
	_ = file.Close() // all output for the old file was written
	return next
}

// wake puts an entry into a channel with a buffer of one entry, unless the buffer is full.
func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
