// Package operate is the one way of an order: whoever gives it, on the command line, by the API, on the
// page or at the admin socket, makes an [Order], and what becomes of it is an [Outcome].
package operate
