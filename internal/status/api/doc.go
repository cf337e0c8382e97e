// Package api is the JSON API: programs use it to read a node's state and to give orders.
//
//	endpoint  one route as data: path, parameters, the types of body and reply, the right that it needs, and its function
//	askFunc   answers one request with a value of the endpoint's type
//	signed    a body that names the author of an order
//	apiError  the answer to a request that failed: words with a remedy, and a code for programs
//	stream    the Snapshot after each change, as server-sent events
//
// The routes and the OpenAPI description are made of the same table, so they cannot differ.
//
// The invariants:
//
//   - An order needs the token, or the admin socket. A question that shows records or output needs it, too; the rest is public.
//   - Bodies are strict: an unknown field is refused, and so is a value that means nothing.
//   - A caller without the right gets the public part of a state: errors are shortened to what package state lets out.
//   - Requests over the admin socket have slots of their own, so that the network cannot block an operator on the host.
//
// What fails, and what then:
//
//   - The state is not known yet: the answer is 503 with the configured state. An old state is sent with its age.
//   - All slots are taken: 503 at once, and the caller may ask again.
//   - An order was carried out in part: the error has the outcome of that part.
//   - An endpoint panics: the answer is 500, the log has the stack, and the daemon goes on.
package api
