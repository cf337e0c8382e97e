// Package page is what people see of a node: its pages, which keep themselves current, and
// the forms by which they give orders.
package page

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strings"

	"go.uber.org/zap"

	"baton/internal/diagnose"
	"baton/internal/operate"
	"baton/internal/status/auth"
	"baton/internal/status/state"
	"baton/internal/status/web"
	"baton/internal/text"
)

var (
	//go:embed page*.html
	pageHTML embed.FS
	//go:embed page.css
	pageCSS string
	//go:embed page.js
	pageJS string
)

// Config is what pages are made of.
type Config struct {
	Watch  *state.State
	Auth   *auth.Auth
	Node   operate.Node // nil: nothing but the Snapshot is shown
	Do     operate.Do   // nil: no order is taken
	Places *web.Places
	Log    *zap.Logger
}

// Pages renders the pages: each one document, with style sheet and script inside, that
// asks for nothing from anywhere.
type Pages struct {
	Config
	template *template.Template
	Policy   string // Content-Security-Policy that allows exactly the two inline parts
	build    string
	answers  *answers
	hub      *web.Feeds[topic, *edition]
	results  *results
	turns    *turns
}

// New returns the pages of c.
func New(c Config) *Pages {
	css, js := digest(pageCSS), digest(pageJS)
	parts := template.FuncMap{
		// Both are ours, and are inserted as they are so that their digests hold.
		"css": func() template.CSS { return template.CSS(pageCSS) }, //nolint:gosec // embedded, not input
		"js":  func() template.JS { return template.JS(pageJS) },    //nolint:gosec // embedded, not input
		"url": orderLink, "seenWithin": diagnose.SeenWithin.Milliseconds,
	}
	p := &Pages{
		Config: c, answers: newAnswers(c.Node),
		template: template.Must(template.New("page").Funcs(parts).ParseFS(pageHTML, "page*.html")),
		Policy: fmt.Sprintf("default-src 'none'; style-src 'sha256-%s'; script-src 'sha256-%s'; connect-src 'self'; "+
			"img-src data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'", css, js),
		results: &results{}, turns: &turns{},
	}
	var all []string
	for _, t := range p.template.Templates() {
		if t.Tree != nil {
			all = append(all, t.Name()+t.Tree.Root.String())
		}
	}
	slices.Sort(all) // they come in any order, and a restart is no other build
	p.build = digest(strings.Join(all, "") + css + js)[:12]
	p.hub = newHub(p)
	return p
}

// orderLink is orderURL for templates.
func orderLink(action string, pairs ...string) string {
	return orderURL(operate.Kind(action), pairs...)
}

// document is a page and what stands around it.
type document struct {
	Kind     string // which template shows View
	Code     int
	Build    string // identifies style sheet, script and templates
	Title    string
	Announce string // read out by screen readers when it changes
	Alarm    string // why the page is not up to date
	NodeID   string
	Version  string
	LockKey  string
	Role     string
	Now      instant
	Letters  string
	URL      string // of this page, to come back to
	Root     string // the way from here to the first page
	Refresh  int    // in s, without a script; 0: it stays as it is
	CanOrder bool   // orders are taken here from who has the token
	See      bool   // output, errors and records are shown in full
	HowTo    bool   // say how to have them taken
	View     any

	// Of one session; they are not part of what is shared.
	SignedIn bool
	CSRF     string
}

// topic is a page as far as it is the same for all its readers.
type topic struct {
	path, query string
	see, order  bool // what callers may see; whether orders are taken
}

// newDocument is a page's frame.
func (p *Pages) newDocument(t topic, snap diagnose.Snapshot, known bool) *document {
	now := snap.Clock()
	d := &document{
		Code: http.StatusOK, Build: p.build, NodeID: cmp.Or(snap.NodeID, "unnamed node"), Version: snap.Version,
		LockKey: snap.LockKey, Role: string(snap.Role),
		Now: at(now.UTC(), now), URL: t.path, Root: upTo(t.path), Refresh: 5, CanOrder: t.order, See: t.see, HowTo: !t.order,
	}
	if t.query != "" {
		d.URL += "?" + t.query
	}
	if snap.Error != "" {
		d.Alarm = clip(visible(snap.Error))
		if known {
			d.Alarm = "What you see is " + text.Span(snap.Age.Duration()) + " old: " + d.Alarm
		}
	}
	return d
}

// render renders to memory first: a page is sent whole or not at all. part is "document",
// or "live": what changes of one.
func (p *Pages) render(part string, d *document) ([]byte, error) {
	var out bytes.Buffer
	if err := p.template.ExecuteTemplate(&out, part, d); err != nil {
		return nil, fmt.Errorf("render the page %s: %w", d.Kind, err)
	}
	return relative(out.Bytes(), d.Root), nil
}

// upTo is the way from a page of a path to the first page, as "../../". A page may stand below
// a path of a proxy, which only the browser knows.
func upTo(path string) string {
	return cmp.Or(strings.Repeat("../", max(strings.Count(path, "/")-1, 0)), "./")
}

// relative makes the addresses in a page relative. Views and templates write them from this
// node's root. Nothing else can match: the template escapes the quotes in all that it is given.
func relative(page []byte, root string) []byte {
	for _, attribute := range []string{` href="`, ` action="`} {
		page = bytes.ReplaceAll(page, []byte(attribute+"/"), []byte(attribute+root))
	}
	return page
}

// redirect sends the browser to an address that is written from this node's root.
func redirect(w http.ResponseWriter, r *http.Request, to string) {
	w.Header().Set("Location", upTo(r.URL.EscapedPath())+strings.TrimPrefix(to, "/"))
	w.WriteHeader(http.StatusSeeOther)
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.StdEncoding.EncodeToString(sum[:])
}
