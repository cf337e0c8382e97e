// Package status is what operators and monitoring see of a node: a page, the same
// as JSON, health endpoints and metrics. It only ever reads.
//
// The package knows no other: it declares its own view of the world ([Snapshot]),
// and the daemon fills it through a [Source]. Two rules follow from the fact that
// it is looked at most when something is broken:
//
//   - It answers, within two seconds, whatever hangs. A Source that does not come
//     back is waited for by one goroutine, not by one a request; meanwhile the page
//     shows the last known state, says how old it is and why.
//   - It never harms the leader. Requests and connections are limited, states are
//     read at most twice a second however many people look, and a panic in a
//     Source is an error on the page.
//
// Health endpoints and metrics come from memory alone ([Health], [Metrics]) and
// never wait for a Source.
package status
