package status

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"baton/internal/operate"
	"baton/internal/status/statustest"
)

const tooLong = `column "title" is varchar(…), the value has … characters`

// groupedServer returns a server with 130 dead letters with the same reason, and a few with another reason.
func groupedServer(t *testing.T) (*Server, *given, *statustest.FakeNode, time.Time) {
	t.Helper()
	now := time.Now().UTC().Truncate(time.Microsecond)
	d := &statustest.FakeNode{Grouped: []operate.LetterReason{
		{Job: "users", Database: "main", Reason: tooLong, Letters: 130, Newest: now.Add(-time.Minute)},
		{Job: "views", Database: "main", Reason: "no such column", Letters: 1, Newest: now},
	}}
	for i := range 130 {
		d.Waiting = append(d.Waiting, operate.Letter{
			ID: fmt.Sprintf("%032x", i), Job: "users", Database: "main", Error: tooLong,
			At: now.Add(-time.Minute - time.Duration(i)*time.Second),
		})
	}
	g := &given{}
	s := New(Config{
		Source: statustest.Fixed(statustest.Sample(now)), Health: standby, Node: d, Do: g.do, TokenFile: tokenFile(t, secretToken),
	})
	return s, g, d, now
}

var hidden = regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)">`)

func formOf(body string) url.Values {
	form := url.Values{}
	for _, m := range hidden.FindAllStringSubmatch(body, -1) {
		form.Set(m[1], strings.NewReplacer("&#43;", "+", "&amp;", "&").Replace(m[2]))
	}
	return form
}

func TestAGroupOfDeadLettersIsReplayedAndDropped(t *testing.T) {
	s, g, d, now := groupedServer(t)
	cookies, _ := enterDoor(t, door(s))
	page := browse(s, "GET", "/dead-letters", nil, cookies).Body.String()
	for _, kind := range []operate.Kind{operate.KindReplay, operate.KindDrop} {
		link := regexp.MustCompile(`/confirm\?action=` + string(kind) + `&amp;group=[0-9a-f]{16}`).FindString(page)
		ask := browse(s, "GET", strings.ReplaceAll(link, "&amp;", "&"), nil, cookies)
		form := formOf(ask.Body.String())
		if ask.Code != 200 || !strings.Contains(ask.Body.String(), "130 dead letters of job users") || form.Get("group") == "" {
			t.Fatalf("%s: %d %s", link, ask.Code, ask.Body)
		}
		before := g.count()
		forged := url.Values{"action": form["action"], "group": form["group"], "newest": form["newest"], "csrf": {"x"}}
		if rec := browse(s, "POST", "/do", forged, cookies); rec.Code != http.StatusForbidden || g.count() != before {
			t.Fatalf("%s without the CSRF token: %d", kind, rec.Code)
		}
		if rec := browse(s, "POST", "/do", form, nil); rec.Code != http.StatusUnauthorized || g.count() != before {
			t.Fatalf("%s without a session: %d", kind, rec.Code)
		}
		// Letters that arrive after the question are not included in the order.
		late := operate.Letter{ID: strings.Repeat("f", 32), Job: "users", Database: "main", At: now, Error: tooLong}
		d.Waiting = append([]operate.Letter{late}, d.Waiting...)
		form.Set("name", "alice")
		if rec := browse(s, "POST", "/do", form, cookies); rec.Code != http.StatusSeeOther || g.count() != before+1 {
			t.Fatalf("%s: %d, %d orders: %s", kind, rec.Code, g.count()-before, rec.Body)
		}
		d.Waiting = d.Waiting[1:]
		o, want := g.last(), map[operate.Kind]int{operate.KindReplay: 100, operate.KindDrop: 130}[kind]
		if o.Kind != kind || len(o.Letters) != want || o.Letters[0] != d.Waiting[129].Key() || o.By != "alice" {
			t.Errorf("%s: %d letters by %q, the first %+v; want %d, the oldest first", o.Kind, len(o.Letters), o.By, o.Letters[0], want)
		}
		if rec := browse(s, "POST", "/do", form, cookies); rec.Code != http.StatusSeeOther || g.count() != before+1 {
			t.Errorf("%s: the same form again: %d, %d orders", kind, rec.Code, g.count()-before)
		}
	}
	before := g.count()
	d.Waiting, d.Grouped = nil, nil
	for _, path := range []string{"/confirm?action=drop&group=0123456789abcdef"} {
		if rec := browse(s, "GET", path, nil, cookies); rec.Code != http.StatusNotFound || g.count() != before {
			t.Errorf("%s: %d", path, rec.Code)
		}
	}
}

func TestDeadLettersHavePagesAndGroups(t *testing.T) {
	s, _, _, _ := groupedServer(t)
	cookies, _ := enterDoor(t, door(s))
	page := browse(s, "GET", "/dead-letters", nil, cookies).Body.String()
	if !strings.Contains(page, ">130 dead letters</a>") || !strings.Contains(page, `<a href="./dead-letters?page=2">Older</a>`) {
		t.Errorf("the first page: %s", page)
	}
	link := regexp.MustCompile(`/dead-letters\?group=[0-9a-f]{16}&amp;job=users`).FindString(page)
	group := strings.ReplaceAll(link, "&amp;", "&")
	for path, want := range map[string]int{
		"/dead-letters": 100, "/dead-letters?page=2": 30, "/dead-letters?page=3": 0, "/dead-letters?page=99": 100,
		group: 100, group + "&page=2": 30, "/dead-letters?group=" + strings.Repeat("0", 16): 100,
	} {
		body := browse(s, "GET", path, nil, cookies).Body.String()
		if n := strings.Count(body, `<td data-label="Id">`); n != want {
			t.Errorf("%s: %d letters, want %d", path, n, want)
		}
		if heads := strings.Contains(body, `aria-label="Group"`); heads != strings.HasPrefix(path, group) {
			t.Errorf("%s: it is the page of a group: %t", path, heads)
		}
	}
	public := browse(s, "GET", "/dead-letters", nil, nil).Body.String()
	if strings.Contains(public, "varchar(") || !strings.Contains(public, "130 dead letters") {
		t.Error("everybody sees the reason in full, or nobody how many there are")
	}
}
