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

// maxLive is the maximum number of readers whose pages this node keeps current. The pages of further readers reload at intervals instead.
const maxLive = 48

// edition is the content of a page between two changes of the page.
type edition struct {
	version int64
	lines   [][]byte
	patch   []byte        // the event that changes the previous edition into this one; nil for the first
	full    func() []byte // returns the event with the whole content, and makes it at the first call
}

// newHub returns the feeds of the open pages. Each page is rendered only once for all its readers.
func newHub(p *Pages) *web.Feeds[topic, *edition] {
	return web.NewFeeds(web.Source[topic, *edition]{Most: maxLive, Life: p.Watch.Life, Begin: p.Watch.Begin, Open: p.keepCurrent})
}

// keepCurrent returns a function that renders one page after each new state.
func (p *Pages) keepCurrent(t topic) func(context.Context, *web.Feed[*edition]) {
	updates, leave, ok := p.Watch.Subscribe()
	if !ok {
		return nil
	}
	return func(ctx context.Context, to *web.Feed[*edition]) {
		defer leave()
		var last *edition
		for seen := int64(0); ; {
			u, version, changed, over := updates.Latest()
			if over {
				return
			}
			if version != seen {
				seen = version
				if e := last.next(p.renderLive(ctx, t, u)); e != last {
					last = e
					to.Put(e)
				}
			}
			select {
			case <-ctx.Done():
				return
			case <-changed:
			}
		}
	}
}

// renderLive renders the part of a page that changes. It returns nil if rendering fails. It runs outside of any request, so it must recover
// from a panic, which would otherwise end the daemon.
func (p *Pages) renderLive(ctx context.Context, t topic, u *state.Update) (body []byte) {
	defer func() {
		if cause := recover(); cause != nil {
			body = nil
			p.Log.Error("rendering a page panicked", zap.String("path", t.path), zap.Any("panic", cause))
		}
	}()
	d := p.compose(ctx, t, u.Snapshot, u.Known)
	if d == nil {
		return nil
	}
	body, err := p.render("live", d)
	if err != nil {
		p.Log.Error("a page was not rendered", zap.Error(err))
		return nil
	}
	return still(body)
}

// The function still returns the page without the texts that the browser's script updates. With them every page would differ from the page
// of the second before. These texts are in <time> elements with the attribute data-tick. Texts from outside cannot imitate such an element,
// because the template escapes "<" in them.
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

// next returns the edition with the given body. If the body has not changed, it returns e. e is nil before the first edition.
func (e *edition) next(body []byte) *edition {
	if body == nil {
		return e
	}
	n := &edition{version: 1, lines: bytes.Split(body, []byte("\n"))}
	if e != nil {
		if slices.EqualFunc(n.lines, e.lines, bytes.Equal) {
			return e
		}
		n.version = e.version + 1
		n.patch = encode("patch", e.version, n.version, difference(e.lines, n.lines))
	}
	n.full = sync.OnceValue(func() []byte { return encode("full", 0, n.version, string(body)) })
	return n
}

// splice is a change that replaces some lines of a page with other lines.
type splice struct {
	At   int      `json:"at"`
	Cut  int      `json:"cut"`
	Text []string `json:"text"`
}

// difference returns the splices that change the lines a into the lines b. The last splice of the page comes first.
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

// encode returns an event for the stream of a page. The kind of the event is "patch" or "full".
func encode(kind string, from, to int64, content any) []byte {
	text, _ := json.Marshal(map[string]any{"from": from, "to": to, kind: content}) // cannot fail, because the values are texts and numbers
	return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", kind, text)
}

// serveLive streams the changes of the page that its query names.
func (p *Pages) serveLive(w http.ResponseWriter, r *http.Request) {
	target, err := url.Parse(r.URL.Query().Get("page"))
	if err != nil || !strings.HasPrefix(target.Path, "/") {
		http.Error(w, "The parameter page is missing or unknown.", http.StatusBadRequest)
		return
	}
	t := p.topicOf(r, target.EscapedPath(), target.RawQuery)
	if snap, known := p.Watch.Snapshot(r.Context()); p.compose(r.Context(), t, snap, known) == nil {
		http.NotFound(w, r)
		return
	}
	if build := r.URL.Query().Get("build"); build != "" && build != p.build {
		_ = web.NewEventStream(w).Send([]byte("event: upgraded\ndata: 1\n\n")) // an error means that the browser has left
		return
	}
	current, leave, ok := p.hub.Join(t)
	if !ok {
		w.Header().Set("Retry-After", "10")
		http.Error(w, "Too many pages are kept current: load this page again instead.", http.StatusServiceUnavailable)
		return
	}
	defer leave()
	version := int64(0)
	err = web.Follow(w, r, current, time.Second, func(e *edition, isNew bool) (event []byte, ok bool) {
		if isNew {
			if event = e.patch; event == nil || e.version != version+1 {
				event = e.full()
			}
			version = e.version
		}
		// The beat shows that the node is alive. It contains the node's time, which the counters on the page use.
		return fmt.Appendf(bytes.Clone(event), "event: beat\ndata: %d\n\n", time.Now().UnixMilli()), p.Auth.Holds(r)
	})
	if err != nil {
		p.Log.Debug("a page is not kept current any more", zap.Error(err))
	}
}
