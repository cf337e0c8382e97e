package web

import (
	"net/http"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"
)

// mostUnread bounds the bytes of answers that wait for slow readers without holding a slot.
const mostUnread = 32 << 20

// Places limits the requests that are served at the same time.
type Places struct {
	log    *zap.Logger
	unread atomic.Int64 // bytes of answers that are being sent
}

// NewPlaces returns Places that log answers which could not be sent.
func NewPlaces(log *zap.Logger) *Places { return &Places{log: log} }

// Limit serves at most cap(slots) requests at a time and turns the others away.
func (p *Places) Limit(slots chan struct{}, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = TakeBody(r) // first, so that a slow sender holds no slot
		if !p.InPlace(w, slots, func(w http.ResponseWriter) { next.ServeHTTP(w, r) }) {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "Too many requests at a time: try again in a second.", http.StatusServiceUnavailable)
		}
	})
}

// InPlace serves a request in a free slot; false: all slots were taken. It frees the slot
// before it sends the answer: a slow reader holds the answer's memory, but blocks no other
// request. Above mostUnread bytes of such memory, an answer keeps its slot until it is sent.
func (p *Places) InPlace(w http.ResponseWriter, slots chan struct{}, serve func(http.ResponseWriter)) bool {
	select {
	case slots <- struct{}{}:
	default:
		return false
	}
	leave := sync.OnceFunc(func() { <-slots })
	defer leave()
	made := &prepared{ResponseWriter: w}
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

// prepared holds an answer in memory until it is sent.
type prepared struct {
	http.ResponseWriter
	code int
	body []byte
}

// WriteHeader keeps the first code.
func (p *prepared) WriteHeader(code int) {
	if p.code == 0 {
		p.code = code
	}
}

func (p *prepared) Write(text []byte) (int, error) {
	p.WriteHeader(http.StatusOK)
	p.body = append(p.body, text...)
	return len(text), nil
}

// Unwrap lets a [http.ResponseController] find the deadlines of the connection.
func (p *prepared) Unwrap() http.ResponseWriter { return p.ResponseWriter }

func (p *prepared) send() error {
	p.WriteHeader(http.StatusOK)
	p.ResponseWriter.WriteHeader(p.code)
	_, err := p.ResponseWriter.Write(p.body)
	return err
}
