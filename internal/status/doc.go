// Package status is what operators and monitoring see of a node, and where they give
// orders: pages, the same as an API, health endpoints and metrics. It has the listeners,
// and puts together what is served on them; each part is a package below it.
//
// Nothing in them knows Redis or a database: the daemon fills a [diagnose.Snapshot] through
// a [state.Source], and what there is beyond it an [operate.Node] answers. Nothing is carried
// out here: an [operate.Order] is data, handed to an [operate.Do] once it is known who may
// give it (package auth). Two rules follow from the fact that a node is asked most when
// something is broken:
//
//   - It answers, within two seconds, whatever hangs. A Source that does not come
//     back is waited for by one goroutine, not by one a request; meanwhile the page
//     shows the last known state, says how old it is and why.
//   - It never harms the leader. Requests and connections are limited, states are
//     read at most twice a second however many pages are open, and a panic in a
//     Source is an error on the page.
//
// Health endpoints and metrics come from memory alone ([Health], package metrics) and
// never wait for a Source.
package status
