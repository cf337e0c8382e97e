package program

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"go.uber.org/zap"

	"baton/internal/secret"
)

const (
	// shipFirst is the time before the first piece: most commands have ended by then.
	shipFirst = 100 * time.Millisecond
	// shipEvery is the time between two pieces of a run's output that go to Redis.
	shipEvery = 500 * time.Millisecond
	// shipLast is how long the end of a run waits until its output is there.
	shipLast = 500 * time.Millisecond
	// shipWithin bounds one attempt.
	shipWithin = 5 * time.Second
	// keepTail is how much of the output goes into the history.
	keepTail = 4 << 10
)

// printout receives the output of a command: it keeps the end, and ships it to the store. Writing to it never waits for the store.
type printout struct {
	secrets *secret.Redactor
	ship    func(ctx context.Context, offset int64, text []byte) error
	file    *logFile // nil: no file
	log     *zap.Logger

	mu      sync.Mutex
	end     tailBuffer
	shipper sync.WaitGroup
	over    chan struct{}      // closed at the end of the output
	abandon context.CancelFunc // ends the shipping; nil: it has not begun
}

func newPrintout(secrets []string, keep int, ship func(context.Context, int64, []byte) error, file *logFile, log *zap.Logger) *printout {
	return &printout{
		secrets: secret.NewRedactor(secrets), ship: ship, file: file, log: log,
		end: tailBuffer{limit: keep}, over: make(chan struct{}),
	}
}

// Write takes output of the command.
func (p *printout) Write(text []byte) (int, error) {
	p.toFile(p.pass(text, false))
	return len(text), nil
}

// pass adds text without its secrets to the end that is kept, and returns it for the file.
func (p *printout) pass(text []byte, last bool) (clean []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.secrets.Pass(text, last, func(piece []byte) {
		p.end.write(piece)
		if p.file != nil {
			clean = append(clean, piece...)
		}
	})
	p.beginShipping()
	return clean
}

// toFile waits for the disk, without the lock: shipping goes on meanwhile.
func (p *printout) toFile(text []byte) {
	if p.file != nil && len(text) > 0 {
		p.file.write(text)
	}
}

// beginShipping begins at the first output. The lock is held.
func (p *printout) beginShipping() {
	if p.end.total == 0 || p.abandon != nil || p.ship == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.abandon = cancel
	p.shipper.Go(func() { p.keepShipping(ctx) })
}

// ReadFrom reads all of the command's output: it starts with a small buffer, until one is filled, since most commands print little and
// many may run at a time.
func (p *printout) ReadFrom(r io.Reader) (n int64, err error) {
	buffer := make([]byte, 2<<10)
	for {
		many, err := r.Read(buffer)
		if many > 0 {
			n += int64(many)
			_, _ = p.Write(buffer[:many])
		}
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		if many == len(buffer) && many < 64<<10 {
			buffer = make([]byte, 64<<10)
		}
	}
}

// close ends the output, and waits until the rest is shipped, up to a limit.
func (p *printout) close(within time.Duration) {
	p.toFile(p.pass(nil, true))
	p.mu.Lock()
	abandon := p.abandon
	p.mu.Unlock()
	close(p.over)
	if p.file != nil {
		defer p.file.close(min(within, logLast))
	}
	if abandon == nil {
		return
	}
	shipped := make(chan struct{})
	go func() {
		p.shipper.Wait()
		close(shipped)
	}()
	select { // a request under way when the time is over may finish late: no caller waits for it
	case <-shipped:
	case <-time.After(max(within, 0)):
	}
	abandon()
}

// tail is the very end of the output, for the history.
func (p *printout) tail() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, text := p.end.from(p.end.total - keepTail)
	for len(text) > 0 && !utf8.RuneStart(text[0]) { // the rest of a character that was cut
		text = text[1:]
	}
	return strings.ToValidUTF8(string(text), string(utf8.RuneError))
}

// keepShipping ships new output, again and again, until no more comes.
func (p *printout) keepShipping(ctx context.Context) {
	shipped, trouble := int64(0), false
	for wait, last := shipFirst, false; ; wait = shipEvery {
		select {
		case <-p.over:
			last = true
		case <-time.After(wait):
		}
		p.mu.Lock()
		offset, text := p.end.from(shipped)
		p.mu.Unlock()
		if len(text) > 0 {
			attempt, cancel := context.WithTimeout(ctx, shipWithin)
			err := p.ship(attempt, offset, text)
			cancel()
			switch {
			case err == nil:
				shipped = offset + int64(len(text))
			case !trouble: // once: the run goes on, and the same piece is tried again
				trouble = true
				p.log.Warn("cannot keep the command's output", zap.Error(err))
			}
		}
		if last || ctx.Err() != nil {
			return
		}
	}
}

// tailBuffer is the end of the written text: a ring that grows up to its limit.
type tailBuffer struct {
	limit int
	ring  []byte
	total int64 // bytes ever written; the last one is before total % len(ring)
}

func (b *tailBuffer) write(text []byte) {
	if len(b.ring) < b.limit && b.total+int64(len(text)) > int64(len(b.ring)) {
		b.grow(int(min(b.total+int64(len(text)), int64(b.limit))))
	}
	if over := len(text) - len(b.ring); over > 0 {
		b.total, text = b.total+int64(over), text[over:]
	}
	for len(text) > 0 {
		n := copy(b.ring[b.total%int64(len(b.ring)):], text)
		b.total, text = b.total+int64(n), text[n:]
	}
}

// grow makes room for need bytes in all. Before it is full, the ring is in order.
func (b *tailBuffer) grow(need int) {
	size := max(len(b.ring), 1<<10)
	for size < need {
		size *= 2
	}
	ring := make([]byte, min(size, b.limit))
	copy(ring, b.ring[:min(b.total, int64(len(b.ring)))])
	b.ring = ring
}

// from copies the text from an offset on, as far as it is kept, and returns where it begins.
func (b *tailBuffer) from(offset int64) (int64, []byte) {
	size := int64(len(b.ring))
	offset = max(offset, b.total-size, 0)
	if offset >= b.total {
		return b.total, nil
	}
	text := make([]byte, 0, b.total-offset)
	first, last := offset%size, b.total%size
	if first < last {
		return offset, append(text, b.ring[first:last]...)
	}
	return offset, append(append(text, b.ring[first:]...), b.ring[:last]...)
}
