package page

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strconv"
	"time"

	"baton/internal/operate"
	"baton/internal/status/state"
	"baton/internal/text"
)

// lettersPage is a page of dead letters: records that did not fit their table.
type lettersPage struct {
	Job     string // only the letters of this job; "": of all
	Groups  []groupView
	Group   *groupView // only the letters of this group; nil: of all
	Letters []letterView
	Newer   string // link to the previous part of the list; "": none
	Older   string
	More    bool     // there are more letters than all pages can show
	Trouble []string // the parts that could not be read
	Secret  bool     // records are visible only after signing in
}

// groupView is a group of a job's dead letters with the same reason.
type groupView struct {
	Job, JobURL, Database, Reason, Count string
	Newest                               instant
	URL, Replay, Drop                    string
}

// groupID names a group in addresses. It is a hash, so that addresses do not reveal the reason.
func groupID(r operate.LetterReason) string {
	sum := sha256.Sum256([]byte(r.Job + "\n" + r.Database + "\n" + r.Reason))
	return hex.EncodeToString(sum[:8])
}

// groupsShown bounds the groups on the page.
const groupsShown = 20

func newGroup(r operate.LetterReason, now time.Time, see bool) groupView {
	v := groupView{
		Job: r.Job, JobURL: jobURL(r.Job), Database: r.Database, Reason: clip(visible(r.Reason)),
		Count: text.Count(r.Letters, "dead letter"), Newest: at(r.Newest.UTC(), now), URL: lettersURL(r.Job, groupID(r), 1),
		Replay: orderURL(operate.KindReplay, "group", groupID(r)), Drop: orderURL(operate.KindDrop, "group", groupID(r)),
	}
	if !see {
		v.Reason = state.PublicError(v.Reason)
	}
	return v
}

// lettersURL returns the address of a page of dead letters: those of a job or a group, or all.
func lettersURL(job, group string, page int) string {
	q := url.Values{}
	if job != "" {
		q.Set("job", job)
	}
	if group != "" {
		q.Set("group", group)
	}
	if page > 1 {
		q.Set("page", strconv.Itoa(page))
	}
	if len(q) == 0 {
		return "/dead-letters"
	}
	return "/dead-letters?" + q.Encode()
}

// pageNumber returns the number of a page in a query; 1 if it is not between 1 and lettersPages.
func pageNumber(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > lettersPages {
		return 1
	}
	return n
}

type letterView struct {
	ID, Job, JobURL, Database string
	Why, Record               string
	When                      instant
	Replay, Drop              string // links to these orders
}

// lettersShown bounds the letters on one page, lettersPages the pages.
const lettersShown, lettersPages = 100, 10

// maxRecord bounds the bytes of a record, to keep a page of many records small.
const maxRecord = 400

func newLetters(letters []operate.Letter, now time.Time, see bool) (views []letterView) {
	for _, l := range letters {
		v := letterView{
			ID: l.ID, Job: l.Job, JobURL: jobURL(l.Job), Database: l.Database, When: at(l.At.UTC(), now),
			Why: clip(visible(l.Error)), Replay: orderURL(operate.KindReplay, "letter", l.ID),
			Drop: orderURL(operate.KindDrop, "letter", l.ID),
		}
		if see {
			v.Record = visible(l.Record)
			if len(v.Record) > maxRecord {
				v.Record = text.Clip(v.Record, maxRecord)
			}
		} else {
			v.Why = state.PublicError(v.Why)
		}
		views = append(views, v)
	}
	return views
}

// orderURL returns the address of the form that confirms an order. pairs are names and values.
func orderURL(a operate.Kind, pairs ...string) string {
	q := url.Values{"action": {string(a)}}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return "/confirm?" + q.Encode()
}
