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

// Config has the parts of Pages.
type Config struct {
	Watch  *state.State
	Auth   *auth.Auth
	Node   operate.Node // nil: the pages show only the Snapshot
	Do     operate.Do   // nil: the pages take no orders
	Places *web.Places
	Log    *zap.Logger
}

// Pages renders the pages. Each is one document with its style sheet and script inside, and
// loads no other file.
type Pages struct {
	Config
	template *template.Template
	Policy   string // the Content-Security-Policy: of inline parts it allows exactly these two
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
		// Both are our own files. Unescaped, they match their digests.
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
	slices.Sort(all) // their order is random, and a restart must not change the build
	p.build = digest(strings.Join(all, "") + css + js)[:12]
	p.hub = newHub(p)
	return p
}

// orderLink is orderURL for templates.
func orderLink(action string, pairs ...string) string {
	return orderURL(operate.Kind(action), pairs...)
}

// document is a page with its frame.
type document struct {
	Kind     string // the template of View
	Code     int
	Build    string // identifies style sheet, script and templates
	Title    string
	Announce string // read out by screen readers when it changes
	Alarm    string // the reason why the page is not up to date
	NodeID   string
	Version  string
	LockKey  string
	Role     string
	Now      instant
	Letters  string
	URL      string // of this page, to return to it
	Root     string // the relative path from here to the first page
	Refresh  int    // in s, for browsers without script; 0: no refresh
	CanOrder bool   // the node takes orders on this connection from callers with the token
	See      bool   // show output, errors and records in full
	HowTo    bool   // explain how to allow orders
	View     any

	// Of one session, so not in the part that readers share.
	SignedIn bool
	CSRF     string
}

// topic identifies a page that is the same for all its readers.
type topic struct {
	path, query string
	see, order  bool // the readers may see everything; may give orders
}

// newDocument returns a page's frame.
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

// render renders to memory first, so that a page is sent whole or not at all. part is "document",
// or "live" for the part that changes.
func (p *Pages) render(part string, d *document) ([]byte, error) {
	var out bytes.Buffer
	if err := p.template.ExecuteTemplate(&out, part, d); err != nil {
		return nil, fmt.Errorf("render the page %s: %w", d.Kind, err)
	}
	return relative(out.Bytes(), d.Root), nil
}

// upTo returns the relative path from a page to the first page, such as "../../". A proxy may put
// the pages below a path of its own, which only the browser knows.
func upTo(path string) string {
	return cmp.Or(strings.Repeat("../", max(strings.Count(path, "/")-1, 0)), "./")
}

// relative makes the addresses in a page relative. Views and templates write them from this
// node's root. Other texts cannot match, since the template escapes their quotes.
func relative(page []byte, root string) []byte {
	for _, attribute := range []string{` href="`, ` action="`} {
		page = bytes.ReplaceAll(page, []byte(attribute+"/"), []byte(attribute+root))
	}
	return page
}

// redirect sends the browser to an address given from this node's root.
func redirect(w http.ResponseWriter, r *http.Request, to string) {
	w.Header().Set("Location", upTo(r.URL.EscapedPath())+strings.TrimPrefix(to, "/"))
	w.WriteHeader(http.StatusSeeOther)
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.StdEncoding.EncodeToString(sum[:])
}
