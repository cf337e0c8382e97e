package web

import (
	"net/http"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"
)

// mostUnread is how many bytes of answers may wait for their readers outside of a place.
const mostUnread = 32 << 20

// Places are where requests are served at a time.
type Places struct {
	log    *zap.Logger
	unread atomic.Int64 // bytes that are sent, and hold no place
}

// NewPlaces returns places that log answers which were not sent.
func NewPlaces(log *zap.Logger) *Places { return &Places{log: log} }

// Limit serves at most cap(slots) requests at a time and turns the others away.
func (p *Places) Limit(slots chan struct{}, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = TakeBody(r) // a slow sender takes no place
		if !p.InPlace(w, slots, func(w http.ResponseWriter) { next.ServeHTTP(w, r) }) {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "Too many requests at a time: try again in a second.", http.StatusServiceUnavailable)
		}
	})
}

// InPlace has a request served that has one of the slots; false: none was free. The slot is
// free again before the answer is sent: who reads it slowly, or never, has the memory that
// it takes, and keeps no other from being served. Only when too much memory is taken
// that way a slow reader keeps its slot.
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

// prepared is an answer that is made, and not sent yet.
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
