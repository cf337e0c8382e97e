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

// lettersPage is a page of dead letters, which are records that did not fit their table.
type lettersPage struct {
	Job     string // the page shows only the letters of this job; "" means all jobs
	Groups  []groupView
	Group   *groupView // the page shows only the letters of this group; nil means all groups
	Letters []letterView
	Newer   string // a link to the previous part of the list; "" if there is none
	Older   string
	More    bool     // there are more letters than all pages can show
	Trouble []string // the parts that could not be read
	Secret  bool     // the user must sign in to see the records
}

// groupView is a group of dead letters of one job that have the same reason.
type groupView struct {
	Job, JobURL, Database, Reason, Count string
	Newest                               instant
	URL, Replay, Drop                    string
}

// groupID returns the name that a URL uses for a group of dead letters. It is a hash, so that the URL does not reveal the reason of the
// letters.
func groupID(r operate.LetterReason) string {
	sum := sha256.Sum256([]byte(r.Job + "\n" + r.Database + "\n" + r.Reason))
	return hex.EncodeToString(sum[:8])
}

// groupsShown is the maximum number of groups of dead letters on the page.
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

// lettersURL returns the address of a page with the dead letters of a job or of a group, or with all dead letters.
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

// pageNumber returns the page number in a query. It returns 1 if the number is not between 1 and lettersPages.
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
	Replay, Drop              string // the addresses of these orders
}

// lettersShown is the maximum number of dead letters on one page, and lettersPages is the maximum number of such pages.
const lettersShown, lettersPages = 100, 10

// maxRecord is the maximum length of a shown record in bytes. It keeps a page with many records small.
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

// orderURL returns the address of the form that confirms an order. The argument pairs contains names and values of the query, alternately.
func orderURL(a operate.Kind, pairs ...string) string {
	q := url.Values{"action": {string(a)}}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return "/confirm?" + q.Encode()
}
