package web

import (
	"net/http"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"
)

// mostUnread limits the total size, in bytes, of the answers that wait for slow readers and do not hold a slot of the limiter.
const mostUnread = 32 << 20

// RequestLimiter limits the requests that are served at the same time.
type RequestLimiter struct {
	log    *zap.Logger
	unread atomic.Int64 // the number of bytes of answers that are being sent
}

// NewRequestLimiter returns a RequestLimiter. It logs answers that could not be sent.
func NewRequestLimiter(log *zap.Logger) *RequestLimiter { return &RequestLimiter{log: log} }

// Limit returns a handler that serves at most cap(slots) requests at the same time and refuses the others.
func (p *RequestLimiter) Limit(slots chan struct{}, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = TakeBody(r) // before a slot is taken, so that a slow sender holds no slot
		if !p.InPlace(w, slots, func(w http.ResponseWriter) { next.ServeHTTP(w, r) }) {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "Too many requests at the same time: try again in a second.", http.StatusServiceUnavailable)
		}
	})
}

// InPlace serves a request in a free slot. It returns false if all slots are taken. It frees the slot before it sends the answer, so that a
// slow reader uses only memory and does not block other requests. If slow readers already use more than mostUnread bytes of memory, an
// answer keeps its slot until it is sent.
func (p *RequestLimiter) InPlace(w http.ResponseWriter, slots chan struct{}, serve func(http.ResponseWriter)) bool {
	select {
	case slots <- struct{}{}:
	default:
		return false
	}
	leave := sync.OnceFunc(func() { <-slots })
	defer leave()
	made := &bufferedResponse{ResponseWriter: w}
	serve(made)
	size := int64(len(made.body))
	defer p.unread.Add(-size)
	if p.unread.Add(size) <= mostUnread {
		leave()
	}
	if err := made.send(); err != nil {
		p.log.Debug("an answer was not sent", zap.Error(err))
	}
	return true
}

// bufferedResponse stores an answer in memory until it is sent.
type bufferedResponse struct {
	http.ResponseWriter
	code int
	body []byte
}

// WriteHeader stores the first status code. It ignores further codes.
func (p *bufferedResponse) WriteHeader(code int) {
	if p.code == 0 {
		p.code = code
	}
}

func (p *bufferedResponse) Write(text []byte) (int, error) {
	p.WriteHeader(http.StatusOK)
	p.body = append(p.body, text...)
	return len(text), nil
}

// Unwrap allows a [http.ResponseController] to find the deadlines of the connection.
func (p *bufferedResponse) Unwrap() http.ResponseWriter { return p.ResponseWriter }

func (p *bufferedResponse) send() error {
	p.WriteHeader(http.StatusOK)
	p.ResponseWriter.WriteHeader(p.code)
	_, err := p.ResponseWriter.Write(p.body)
	return err
}
