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
	// shipFirst is the time before the first piece is sent, because most commands have ended by then.
	shipFirst = 100 * time.Millisecond
	// shipEvery is the time between two pieces of a run's output that are sent to Redis.
	shipEvery = 500 * time.Millisecond
	// shipLast is the time that the end of a run waits until its output is stored.
	shipLast = 500 * time.Millisecond
	// shipWithin limits one attempt to store a piece.
	shipWithin = 5 * time.Second
	// keepTail is the length of the last part of the output that the history keeps, in bytes.
	keepTail = 4 << 10
)

// printout receives the output of a command. It keeps the end of the output, and sends the output to the store. A write to a printout never
// waits for the store.
type printout struct {
	secrets *secret.Redactor
	ship    func(ctx context.Context, offset int64, text []byte) error
	file    *logFile // nil if there is no log file
	log     *zap.Logger

	mu      sync.Mutex
	end     tailBuffer
	shipper sync.WaitGroup
	over    chan struct{}      // closed at the end of the output
	abandon context.CancelFunc // ends the shipping; nil if it has not begun
}

func newPrintout(secrets []string, keep int, ship func(context.Context, int64, []byte) error, file *logFile, log *zap.Logger) *printout {
	return &printout{
		secrets: secret.NewRedactor(secrets), ship: ship, file: file, log: log,
		end: tailBuffer{limit: keep}, over: make(chan struct{}),
	}
}

// Write accepts output of the command.
func (p *printout) Write(text []byte) (int, error) {
	p.toFile(p.pass(text, false))
	return len(text), nil
}

// pass appends text without its secrets to the kept end, and returns the text for the file.
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

// toFile writes text to the log file, and may wait for the disk. It does not hold the mutex, so that the output is still sent to the store
// in the meantime.
func (p *printout) toFile(text []byte) {
	if p.file != nil && len(text) > 0 {
		p.file.write(text)
	}
}

// beginShipping starts to send the output to the store, at the first output. The caller holds the mutex.
func (p *printout) beginShipping() {
	if p.end.total == 0 || p.abandon != nil || p.ship == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.abandon = cancel
	p.shipper.Go(func() { p.keepShipping(ctx) })
}

// ReadFrom reads all of the command's output. Its buffer is small until a read fills it, because most commands print little and many
// commands may run at the same time.
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

// close ends the output, and waits until the rest is sent to the store, at most for the given duration.
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
	select { // a request under way when the time is over may finish late, but no caller waits for it
	case <-shipped:
	case <-time.After(max(within, 0)):
	}
	abandon()
}

// tail returns the last part of the output, for the history.
func (p *printout) tail() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, text := p.end.from(p.end.total - keepTail)
	for len(text) > 0 && !utf8.RuneStart(text[0]) { // drop the rest of a character that was cut
		text = text[1:]
	}
	return strings.ToValidUTF8(string(text), string(utf8.RuneError))
}

// keepShipping sends new output to the store repeatedly, until there is no more output.
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
			case !trouble: // logged only once, because the run continues and the same piece is tried again
				trouble = true
				p.log.Warn("cannot keep the command's output", zap.Error(err))
			}
		}
		if last || ctx.Err() != nil {
			return
		}
	}
}

// tailBuffer contains the end of the written text. It is a ring that grows up to its limit.
type tailBuffer struct {
	limit int
	ring  []byte
	total int64 // number of bytes ever written; the last byte is before index total % len(ring)
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

// grow makes room for need bytes in total. Until the ring is full, its bytes are in order.
func (b *tailBuffer) grow(need int) {
	size := max(len(b.ring), 1<<10)
	for size < need {
		size *= 2
	}
	ring := make([]byte, min(size, b.limit))
	copy(ring, b.ring[:min(b.total, int64(len(b.ring)))])
	b.ring = ring
}

// The method from returns a copy of the kept text from an offset on, and the offset where the copy begins.
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
