// Package page serves a node's pages for people: jobs, runs, the timeline, dead letters, and forms for orders.
//
//	topic     identifies a page that is the same for all its readers: path, valid query, rights
//	document  a page with its frame; View is the data of one kind of page, in the file view_KIND.go
//	compose   makes the document of a topic out of the Snapshot and some answers of the servers
//	answers   those answers (samples, recent runs, dead letters), each fetched once for all readers
//	edition   the changing part of a page between two changes, and the patch from the edition before
//	turns     forms that were carried out; a form that is sent twice is carried out once
//
// The way of a page: GET renders the document from package state's Snapshot. Its script opens GET /live, and from then on receives
// patches. A page is rendered once for each new Snapshot, whatever the number of its readers.
//
// The way of an order: a link opens /confirm, the form there is sent to /do, and /done shows the outcome. The form has the state that
// the user saw: if that has changed, the page asks again.
//
// The invariants:
//
//   - Each page is one document with its style sheet and script inside. The Content-Security-Policy allows these two by their digests,
//     and nothing else.
//   - html/template escapes every foreign text. A caller without the right to see records and output gets neither.
//   - Queries with the same meaning are one topic, so that a caller cannot make the node render the same page many times.
//   - Times that only tick are left to the browser: otherwise every page would change every second.
//
// What fails, and what then:
//
//   - The Snapshot cannot be read: the page shows the last one, its age and the reason as an alarm.
//   - An answer of a server is late: the page shows the old answer, or none, and the next rendering has the new one.
//   - More pages are open than the node keeps current: the others reload at intervals.
//   - Rendering panics: the log has the cause, and the daemon goes on.
package page
