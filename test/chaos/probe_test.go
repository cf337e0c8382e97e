package chaos

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"baton/internal/testsupport/cluster"
)

const (
	probeEvery = 25 * time.Millisecond
	// probePatience is longer than any freeze. Questions to a frozen node wait, and the node's answers after it wakes are the most
	// important answers of the test.
	probePatience = 12 * time.Second
	probesAtOnce  = 300
)

// answer is an answer of /-/leader with the status code 200: at some moment between sent and got the node said that it leads.
type answer struct {
	node      string
	sent, got time.Time
}

// probes asks every node repeatedly whether it leads.
type probes struct {
	client *http.Client
	urls   map[string]*atomic.Pointer[string] // by node; nil while the node does not run
	work   sync.WaitGroup

	mu      sync.Mutex
	asked   int
	answers []answer
}

func startProbes(t *testing.T, cluster []*cluster.Node) *probes {
	p := &probes{urls: map[string]*atomic.Pointer[string]{}, client: &http.Client{
		Timeout: probePatience, Transport: &http.Transport{MaxIdleConnsPerHost: probesAtOnce, IdleConnTimeout: 5 * time.Second},
	}}
	for _, n := range cluster {
		p.urls[n.ID] = &atomic.Pointer[string]{}
		p.at(n.ID, n.URL())
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() {
		cancel()
		p.work.Wait()
		p.client.CloseIdleConnections()
	})
	for id := range p.urls {
		p.work.Go(func() { p.watch(ctx, id) })
	}
	return p
}

// at sets the address of a node. With "" the node has no address.
func (p *probes) at(id, url string) {
	if url == "" {
		p.urls[id].Store(nil)
		return
	}
	url += "/-/leader"
	p.urls[id].Store(&url)
}

func (p *probes) watch(ctx context.Context, id string) {
	room := make(chan struct{}, probesAtOnce)
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		url := p.urls[id].Load()
		if url == nil {
			continue
		}
		select {
		case room <- struct{}{}:
			p.work.Go(func() {
				p.ask(ctx, id, *url)
				<-room
			})
		default:
		}
	}
}

func (p *probes) ask(ctx context.Context, id, url string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		panic(err) // the harness made the URL
	}
	a := answer{node: id, sent: time.Now()}
	resp, err := p.client.Do(req)
	if err != nil {
		return
	}
	a.got = time.Now()
	_ = resp.Body.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	if resp.StatusCode == http.StatusOK {
		p.answers = append(p.answers, a)
	}
}

// result returns all answers with 200 so far, and the number of all answers.
func (p *probes) result() (answers []answer, asked int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]answer(nil), p.answers...), p.asked
}
