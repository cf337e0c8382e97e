package page

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"baton/internal/status/state"
	"baton/internal/status/web"
)

const (
	// maxLive is how many pages are kept current by this node at a time. Further ones ask
	// again and again instead.
	maxLive = 48
)

// hub keeps pages current that people look at: each is rendered once for all who look at
// the same one. A reader that is slow misses what was in between, and holds nobody up.
type hub struct {
	page *Pages

	mu      sync.Mutex
	readers int
	shows   map[topic]*show
}

func newHub(p *Pages) *hub { return &hub{page: p, shows: map[topic]*show{}} }

// show is one page that somebody looks at.
type show struct {
	readers int
	stop    context.CancelFunc

	mu      sync.Mutex
	version int64
	lines   [][]byte
	patch   []byte        // from the version before to this one, as JSON; nil: there is none
	full    []byte        // as JSON; made when it is asked for
	changed chan struct{} // closed with the next version
	over    bool
}

// join has a page kept current; false if there are too many already.
func (h *hub) join(t topic) (*show, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.readers >= maxLive || h.page.Watch.Life.Err() != nil {
		return nil, false
	}
	sh := h.shows[t]
	if sh == nil {
		updates, leave, ok := h.page.Watch.Live.Subscribe()
		if !ok {
			return nil, false
		}
		ctx, stop := context.WithCancel(h.page.Watch.Life)
		sh = &show{stop: stop, changed: make(chan struct{})}
		h.shows[t] = sh
		h.page.Watch.Busy.Go(func() {
			defer leave()
			h.run(ctx, t, sh, updates)
		})
	}
	sh.readers++
	h.readers++
	return sh, true
}

// leave ends a page with its last reader.
func (h *hub) leave(t topic, sh *show) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.readers--
	if sh.readers--; sh.readers == 0 {
		sh.stop()
		delete(h.shows, t)
	}
}

// run renders one page whenever the state is told.
func (h *hub) run(ctx context.Context, t topic, sh *show, updates <-chan *state.Update) {
	defer sh.end()
	for {
		select {
		case <-ctx.Done():
			return
		case u, open := <-updates:
			if !open {
				return
			}
			sh.take(h.render(ctx, t, u))
		}
	}
}

// render makes what changes of a page; nil if that fails. It runs outside of any request,
// where a panic would end the daemon.
func (h *hub) render(ctx context.Context, t topic, u *state.Update) (body []byte) {
	log := h.page.Log
	defer func() {
		if p := recover(); p != nil {
			body = nil
			log.Error("rendering a page panicked", zap.String("path", t.path), zap.Any("panic", p))
		}
	}()
	d := h.page.compose(ctx, t, u.Snapshot, u.Known)
	if d == nil {
		return nil
	}
	body, err := h.page.render("live", d)
	if err != nil {
		log.Error("a page was not rendered", zap.Error(err))
		return nil
	}
	return still(body)
}

// still takes out what goes on by itself, which the browser's script counts: the texts of
// elements time that have data-tick. Else all of the page would change all of the time.
// In a text of somebody else's there is no "<", so that none can pass for such an element.
func still(body []byte) []byte {
	begin := []byte("<time ")
	var out []byte
	for {
		at := bytes.Index(body, begin)
		if at < 0 {
			return append(out, body...)
		}
		begins := at + bytes.IndexByte(body[at:], '>') + 1
		ends := bytes.IndexByte(body[begins:], '<')
		if begins <= at || ends < 0 {
			return append(out, body...)
		}
		out = append(out, body[:begins]...)
		if !bytes.Contains(body[at:begins], []byte(" data-tick=")) {
			out = append(out, body[begins:begins+ends]...)
		}
		body = body[begins+ends:]
	}
}

// take makes a version of what has changed.
func (sh *show) take(body []byte) {
	if body == nil {
		return
	}
	lines := bytes.Split(body, []byte("\n"))
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.version > 0 && slices.EqualFunc(lines, sh.lines, bytes.Equal) {
		return
	}
	sh.patch = nil
	if sh.version > 0 {
		sh.patch = encode("patch", sh.version, sh.version+1, difference(sh.lines, lines))
	}
	sh.lines, sh.full = lines, nil
	sh.version++
	close(sh.changed)
	sh.changed = make(chan struct{})
}

func (sh *show) end() {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.over = true
	close(sh.changed)
}

// since is what brings a reader from the version that it has to the present one; nil if
// it has that. changed is closed when there is another one.
func (sh *show) since(version int64) (event []byte, now int64, changed <-chan struct{}, over bool) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	switch {
	case sh.over || sh.version == version:
	case sh.patch != nil && version == sh.version-1:
		event = sh.patch
	default:
		if sh.full == nil {
			sh.full = encode("full", 0, sh.version, string(bytes.Join(sh.lines, []byte("\n"))))
		}
		event = sh.full
	}
	return event, sh.version, sh.changed, sh.over
}

// splice puts lines in the place of others.
type splice struct {
	At   int      `json:"at"`
	Cut  int      `json:"cut"`
	Text []string `json:"text"`
}

// difference is what makes a into b, from the end to the beginning.
func difference(a, b [][]byte) []splice {
	head := 0
	for head < min(len(a), len(b)) && bytes.Equal(a[head], b[head]) {
		head++
	}
	tail := 0
	for tail < min(len(a), len(b))-head && bytes.Equal(a[len(a)-1-tail], b[len(b)-1-tail]) {
		tail++
	}
	if len(a) != len(b) {
		return []splice{{head, len(a) - tail - head, texts(b[head : len(b)-tail])}}
	}
	var splices []splice
	for i := len(a) - tail - 1; i >= head; i-- {
		if !bytes.Equal(a[i], b[i]) {
			splices = append(splices, splice{i, 1, texts(b[i : i+1])})
		}
	}
	return splices
}

func texts(lines [][]byte) []string {
	all := make([]string, len(lines))
	for i, l := range lines {
		all[i] = string(l)
	}
	return all
}

// encode writes an event of the stream.
func encode(kind string, from, to int64, content any) []byte {
	text, _ := json.Marshal(map[string]any{"from": from, "to": to, kind: content}) // texts and numbers
	return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", kind, text)
}

// serveLive is a stream of what changes of the page that its query names.
func (p *Pages) serveLive(w http.ResponseWriter, r *http.Request) {
	target, err := url.Parse(r.URL.Query().Get("page"))
	if err != nil || !strings.HasPrefix(target.Path, "/") {
		http.Error(w, "Which page?", http.StatusBadRequest)
		return
	}
	t := p.topicOf(r, target.EscapedPath(), target.RawQuery)
	if snap, known := p.Watch.Snapshot(r.Context()); p.compose(r.Context(), t, snap, known) == nil {
		http.NotFound(w, r)
		return
	}
	if build := r.URL.Query().Get("build"); build != "" && build != p.build {
		_ = web.NewEventStream(w).Send([]byte("event: upgraded\ndata: 1\n\n")) // a browser that is gone needs no news
		return
	}
	sh, ok := p.hub.join(t)
	if !ok {
		w.Header().Set("Retry-After", "10")
		http.Error(w, "Too many pages are kept current: ask for the page itself.", http.StatusServiceUnavailable)
		return
	}
	defer p.hub.leave(t, sh)
	if err := p.stream(web.NewEventStream(w), r, sh); err != nil {
		p.Log.Debug("a page is not kept current any more", zap.Error(err))
	}
}

// stream writes until the reader, its permission or the server is gone.
func (p *Pages) stream(out *web.EventStream, r *http.Request, sh *show) error {
	beat := time.NewTicker(time.Second)
	defer beat.Stop()
	var version int64
	for {
		event, now, changed, over := sh.since(version)
		if over || !p.Auth.Holds(r) {
			return nil
		}
		version = now
		// The time of the node, by which the page counts, shows that the node is there.
		event = fmt.Appendf(bytes.Clone(event), "event: beat\ndata: %d\n\n", time.Now().UnixMilli())
		if err := out.Send(event); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-beat.C:
		case <-r.Context().Done():
			return nil
		}
	}
}
