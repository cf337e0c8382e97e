// Package kept encodes a row of a table as JSON, and decodes the JSON without loss.
//
// The row is an object with a member for each column. A text becomes a string, a number of the driver becomes a number, and NULL becomes
// null. Bytes become {"base64": "..."}, and a text that is not UTF-8 becomes {"text_base64": "..."}, because JSON strings cannot contain
// either of them.
package kept
