// Package page serves a node's pages for people: jobs, runs, the timeline, dead letters, and forms for orders.
//
//	topic     identifies a page that is the same for all its readers, by its path, its valid query and the readers' rights
//	document  a page with its frame; View contains the data of one kind of page, see the files view_KIND.go
//	compose   makes the document of a topic from the Snapshot and some answers of the servers
//	answers   the answers of the servers (samples, recent runs, dead letters), each fetched once for all readers
//	edition   the part of a page that changes, with the patch that changes the previous edition into this one
//	turns     the forms that were carried out; a form that is sent twice is carried out only once
//
// How a page is shown: GET renders the document from package state's Snapshot. The script of the document then opens GET /live, and
// receives patches. A page is rendered once for each new Snapshot, regardless of the number of its readers.
//
// How an order is given: a link opens /confirm, the form on that page is sent to /do, and /done shows the outcome. The form contains the
// state that the user saw. If that state has changed, the page asks the user again.
//
// The invariants:
//
//   - Each page is one document that contains its style sheet and its script. The Content-Security-Policy allows these two by their
//     digests, and nothing else.
//   - html/template escapes every text from outside. A caller without the right to see records and output gets neither.
//   - Queries with the same meaning result in the same topic, so that a caller cannot make the node render the same page many times.
//   - The browser updates the times that change every second, because otherwise every page would change every second.
//
// The failures:
//
//   - If the Snapshot cannot be read, the page shows the last Snapshot, its age and the reason as an alarm.
//   - If a server answers late, the page shows the server's old answer or none, and the next rendering shows the new answer.
//   - If more pages are open than the node keeps current, the other pages reload at intervals.
//   - If rendering panics, the log contains the cause, and the daemon continues.
package page
