// Package document reads and writes the JSON of HTTP's requests and answers: documents as a whole, and
// the tensors in them.
//
// It stands between package rest, which knows what a request is, and the bytes. It has its own
// reader and writer, since this is the hot path and the protocol allows NaN and Infinity.
package document

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"math"
	"strconv"

	"tuner/engine/fault"
)

// Limits on the JSON of a request.
const (
	maxDepth = 100     // largest depth of nested arrays and objects
	maxNodes = 1 << 20 // indexed values, see JSON

	// digits of an integer that always fits a double, even with an exponent of two digits
	maxDigits = 200
)

// JSON is a text that was checked as a whole, with an index of its values. The index has
// the members of objects, and the elements of the arrays in the outermost object (the inputs and
// outputs of a request). It leaves out arrays of data, so that its size does not depend on that of
// the tensors.
//
// Unlike encoding/json it accepts NaN and Infinity, which the protocol allows. Its messages and
// their positions are those of RapidJSON, which Triton passes on to clients.
type JSON struct {
	text  []byte
	flat  bool // no elements of arrays are indexed
	pos   int
	level int    // number of open arrays and objects
	nodes []node // the first is the outermost value
}

// node is a value. Texts are positions in the document: between the quotes for strings, with the
// brackets for the others.
type node struct {
	kind             byte // '{', '[', '"', 't', 'f', 'n', or '0' for numbers
	escaped          bool // a string with escapes
	keyEscaped       bool
	start, end       int32
	keyStart, keyEnd int32 // key of a member of an object
	next             int32 // the node after this one and its content
}

// None is the index of no node. 0 is free, since no search looks for the outermost value.
const None = 0

// Empty returns a document that is an object without members.
func Empty() *JSON { return &JSON{nodes: []node{{kind: '{', next: 1}}} }

// Clear drops the text. The memory of the index is kept for the next one.
func (d *JSON) Clear() { d.text = nil }

// Size returns the number of values for which the index has memory.
func (d *JSON) Size() int { return cap(d.nodes) }

// Len returns the bytes of the text.
func (d *JSON) Len() int { return len(d.text) }

// Kind returns what a value is: one of {, [, ", t, f, n, or 0 for numbers.
func (d *JSON) Kind(i int32) byte { return d.nodes[i].kind }

// Content returns the indexed members of an object, or elements of an array.
func (d *JSON) Content(of int32) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for i := of + 1; i < d.nodes[of].next; i = d.nodes[i].next {
			if !yield(i) {
				return
			}
		}
	}
}

// Parse checks a text and indexes it. The JSON refers to the text's memory.
func (d *JSON) Parse(text []byte) error { return d.parse(text, false) }

// ParseFlat is Parse, but indexes the members of objects alone. It is for texts whose outermost object
// has data in its arrays.
func (d *JSON) ParseFlat(text []byte) error { return d.parse(text, true) }

func (d *JSON) parse(text []byte, flat bool) error {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	*d = JSON{text: text, flat: flat, nodes: d.nodes[:0]}
	if len(text) > math.MaxInt32 {
		return d.wrong("The document is too large.")
	}
	if d.peek() == 0 {
		return d.wrong("The document is empty.")
	}
	if err := d.value(0, node{}); err != nil {
		return err
	}
	if d.peek() != 0 { // as in RapidJSON, a document may end with a null character
		return d.wrong("The document root must not be followed by other values.")
	}
	return nil
}

// wrong makes an error for the current position.
func (d *JSON) wrong(what string) error { return d.wrongAt(what, d.pos) }

func (d *JSON) wrongAt(what string, pos int) error {
	return fault.Errorf(fault.Internal, "failed to parse the request JSON buffer: %s at %d", what, pos)
}

// peek skips white space and returns the next byte, 0 at the end.
func (d *JSON) peek() byte {
	for d.pos < len(d.text) {
		switch c := d.text[d.pos]; c {
		case ' ', '\t', '\r', '\n':
			d.pos++
		default:
			return c
		}
	}
	return 0
}

// value reads a value. as has its key. depth is that of its node, or negative if it has none.
func (d *JSON) value(depth int, as node) error {
	kind, escaped := d.peek(), false
	at := len(d.nodes)
	if depth >= 0 {
		if at == maxNodes {
			return fault.Errorf(fault.InvalidArgument, "request JSON has more than %d values", maxNodes)
		}
		d.nodes = append(d.nodes, as)
	}
	begin := d.pos
	var err error
	switch kind {
	case '{':
		err = d.object(depth)
	case '[':
		err = d.array(depth)
	case '"':
		escaped, err = d.quoted()
	case 't':
		err = d.literal("true")
	case 'f':
		err = d.literal("false")
	case 'n':
		err = d.literal("null")
	default:
		kind = '0'
		err = d.number()
	}
	if err != nil || depth < 0 {
		return err
	}
	n := &d.nodes[at]
	n.kind, n.escaped = kind, escaped
	n.start, n.end, n.next = int32(begin), int32(d.pos), int32(len(d.nodes))
	if kind == '"' {
		n.start, n.end = n.start+1, n.end-1
	}
	return nil
}

// below returns the depth of the content of a value at a depth.
func below(depth int) int {
	if depth < 0 {
		return depth
	}
	return depth + 1
}

func (d *JSON) object(depth int) error {
	if err := d.open(); err != nil {
		return err
	}
	if d.peek() == '}' {
		d.close()
		return nil
	}
	for {
		if d.peek() != '"' {
			return d.wrong("Missing a name for object member.")
		}
		as := node{keyStart: int32(d.pos + 1)}
		var err error
		if as.keyEscaped, err = d.quoted(); err != nil {
			return err
		}
		as.keyEnd = int32(d.pos - 1)
		if d.peek() != ':' {
			return d.wrong("Missing a colon after a name of object member.")
		}
		d.pos++
		if err := d.value(below(depth), as); err != nil {
			return err
		}
		switch d.peek() {
		case ',':
			d.pos++
		case '}':
			d.close()
			return nil
		default:
			return d.wrong("Missing a comma or '}' after an object member.")
		}
	}
}

func (d *JSON) array(depth int) error {
	if err := d.open(); err != nil {
		return err
	}
	if d.peek() == ']' {
		d.close()
		return nil
	}
	inside := -1
	if !d.flat && (depth == 0 || depth == 1) {
		inside = depth + 1
	}
	for {
		if inside < 0 {
			d.integers()
		}
		if err := d.value(inside, node{}); err != nil {
			return err
		}
		switch d.peek() {
		case ',':
			d.pos++
		case ']':
			d.close()
			return nil
		default:
			return d.wrong("Missing a comma or ']' after an array element.")
		}
	}
}

// integers skips elements of an array that are plain integers followed by a comma. Most elements
// are, and this is faster than reading them as values.
func (d *JSON) integers() {
	text, i := d.text, d.pos
	for {
		begin := i
		for i < len(text) && text[i]-'0' <= 9 {
			i++
		}
		if n := i - begin; n == 0 || n > 1 && text[begin] == '0' || n > maxDigits || i == len(text) || text[i] != ',' {
			d.pos = begin
			return
		}
		i++
	}
}

func (d *JSON) open() error {
	if d.level++; d.level > maxDepth {
		// the message of newer Tritons
		return fault.Errorf(fault.InvalidArgument, "JSON nesting depth exceeds maximum allowed limit (%d)", maxDepth)
	}
	d.pos++
	return nil
}

func (d *JSON) close() {
	d.level--
	d.pos++
}

func (d *JSON) literal(word string) error {
	for i := range len(word) {
		if d.pos == len(d.text) || d.text[d.pos] != word[i] {
			return d.wrong("Invalid value.")
		}
		d.pos++
	}
	return nil
}

// quoted reads a string and reports whether it has escapes.
func (d *JSON) quoted() (escaped bool, err error) {
	text, i := d.text, d.pos+1
	for i < len(text) {
		switch c := text[i]; {
		case c == '"':
			d.pos = i + 1
			return escaped, nil
		case c >= ' ' && c != '\\':
			i++
		case c == '\\':
			escaped = true
			n, what := escape(text[i:])
			if what != "" {
				return false, d.wrongAt(what, i)
			}
			i += n
		case c == 0:
			return false, d.wrongAt("Missing a closing quotation mark in string.", i)
		default:
			return false, d.wrongAt("Invalid escape character in string.", i)
		}
	}
	return false, d.wrongAt("Missing a closing quotation mark in string.", i)
}

// number reads a number, or NaN or an infinity.
func (d *JSON) number() error {
	begin := d.pos
	if d.at('-') {
		d.pos++
	}
	switch {
	case d.at('0'):
		d.pos++
	case d.digits():
	case d.at('N'):
		return d.literal("NaN")
	case d.at('I'):
		if err := d.literal("Inf"); err != nil || !d.at('i') {
			return err
		}
		return d.literal("inity")
	default:
		return d.wrong("Invalid value.")
	}
	large := d.pos-begin > maxDigits
	if d.at('.') {
		d.pos++
		if !d.digits() {
			return d.wrong("Miss fraction part in number.")
		}
	}
	if d.at('e') || d.at('E') {
		d.pos++
		if d.at('+') || d.at('-') {
			d.pos++
		}
		from := d.pos
		if !d.digits() {
			return d.wrong("Miss exponent in number.")
		}
		large = large || d.pos-from > 2
	}
	if large {
		if _, err := strconv.ParseFloat(string(d.text[begin:d.pos]), 64); errors.Is(err, strconv.ErrRange) {
			return d.wrongAt("Number too big to be stored in double.", begin)
		}
	}
	return nil
}

func (d *JSON) at(c byte) bool { return d.pos < len(d.text) && d.text[d.pos] == c }

// digits skips digits and reports whether there were any.
func (d *JSON) digits() bool {
	from := d.pos
	for d.pos < len(d.text) && d.text[d.pos]-'0' <= 9 {
		d.pos++
	}
	return d.pos > from
}

// Find returns the first member of an object with the name. It returns None without one, or if
// the node is not an object.
func (d *JSON) Find(object int32, name string) int32 {
	if d.nodes[object].kind != '{' {
		return None
	}
	for i := object + 1; i < d.nodes[object].next; i = d.nodes[i].next {
		if n := &d.nodes[i]; n.keyEscaped {
			if string(d.Key(i)) == name {
				return i
			}
		} else if string(d.text[n.keyStart:n.keyEnd]) == name {
			return i
		}
	}
	return None
}

// Key returns the name of a member. It may share the document's memory.
func (d *JSON) Key(i int32) []byte {
	n := &d.nodes[i]
	return unquote(d.text[n.keyStart:n.keyEnd], n.keyEscaped)
}

// Raw returns the text of a value: between the quotes of a string, and all of any other.
func (d *JSON) Raw(i int32) []byte { return d.text[d.nodes[i].start:d.nodes[i].end] }

// Whole returns the text of a value, of a string with its quotes.
func (d *JSON) Whole(i int32) []byte {
	n := &d.nodes[i]
	if n.kind == '"' {
		return d.text[n.start-1 : n.end+1]
	}
	return d.text[n.start:n.end]
}

// Count returns the number of elements of an array, without those of the arrays in it. Any other value
// counts as one.
func (d *JSON) Count(i int32) uint64 {
	if d.nodes[i].kind != '[' {
		return 1
	}
	count, level, quoted, empty := uint64(0), 0, false, true
	text := d.Raw(i)
	for at := 1; at < len(text)-1; at++ {
		switch c := text[at]; {
		case quoted && c == '\\':
			at++
		case c == '"':
			quoted, empty = !quoted, false
		case quoted:
		case c == '[' || c == '{':
			level++
			empty = false
		case c == ']' || c == '}':
			level--
		case c == ',' && level == 0:
			count++
		case c > ' ':
			empty = false
		}
	}
	if empty {
		return 0
	}
	return count + 1
}

// KindError returns the error for a value of the wrong kind.
func KindError(kind string) error { return kindErrorAs(kind, kind) }

func kindErrorAs(not, as string) error {
	return fault.Errorf(fault.Internal, "attempt to access JSON non-%s as %s", not, as)
}

// Within adds the place of an error in front of it.
func Within(what string, err error) error {
	var known *fault.Error
	if errors.As(err, &known) {
		return &fault.Error{Code: known.Code, Text: what + ": " + known.Text}
	}
	return fmt.Errorf("%s: %w", what, err)
}

// Unable adds the field of an error.
func Unable(field string, err error) error {
	if err == nil {
		return nil
	}
	return Within("Unable to parse '"+field+"'", err)
}

// Text returns the value of a string. It may share the document's memory.
func (d *JSON) Text(i int32) ([]byte, error) {
	if d.nodes[i].kind != '"' {
		return nil, KindError("string")
	}
	return unquote(d.Raw(i), d.nodes[i].escaped), nil
}

// Bool returns the value of a boolean.
func (d *JSON) Bool(i int32) (bool, error) {
	switch d.nodes[i].kind {
	case 't':
		return true, nil
	case 'f':
		return false, nil
	}
	return false, KindError("boolean")
}

// Unsigned returns the value of an unsigned integer.
func (d *JSON) Unsigned(i int32) (uint64, error) {
	if d.nodes[i].kind == '0' {
		if n, err := strconv.ParseUint(string(d.Raw(i)), 10, 64); err == nil {
			return n, nil
		}
	}
	return 0, KindError("unsigned-integer")
}

// Member returns a required member.
func (d *JSON) Member(object int32, name string) (int32, error) {
	i := d.Find(object, name)
	if i == None {
		return i, fault.Errorf(fault.Internal, "attempt to access non-existing object member '%s'", name)
	}
	return i, nil
}

// MemberString returns a required string.
func (d *JSON) MemberString(object int32, name string) ([]byte, error) {
	i, err := d.Member(object, name)
	if err != nil {
		return nil, err
	}
	return d.Text(i)
}

// MemberArray returns a required array.
func (d *JSON) MemberArray(object int32, name string) (int32, error) {
	i, err := d.Member(object, name)
	if err == nil && d.nodes[i].kind != '[' {
		err = KindError("array")
	}
	return i, err
}
