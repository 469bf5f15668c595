package data

import (
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
)

// writeParquet writes the table as one row group with Snappy's compression, which all readers of
// Parquet know. Every column is optional.
func writeParquet(w io.Writer, t table) error {
	file := parquet.NewGenericWriter[any](w, schemaOf(t), parquet.Compression(&parquet.Snappy))
	rows := make([]parquet.Row, len(t.rows))
	for i, cells := range t.rows {
		rows[i] = make(parquet.Row, len(cells))
		for j, cell := range cells {
			rows[i][j] = valueOf(cell).Level(0, definition(cell), j)
		}
	}
	_, err := file.WriteRows(rows)
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		return fmt.Errorf("cannot write Parquet: %w", err)
	}
	return nil
}

// definition returns the definition level of a cell in an optional column.
func definition(cell any) int {
	if cell == nil {
		return 0
	}
	return 1
}

func valueOf(cell any) parquet.Value {
	switch v := cell.(type) {
	case string:
		return parquet.ByteArrayValue([]byte(v))
	case int64:
		return parquet.Int64Value(v)
	case float64:
		return parquet.DoubleValue(v)
	case bool:
		return parquet.BooleanValue(v)
	}
	return parquet.NullValue()
}

// ordered is a group whose columns keep the table's order. A parquet.Group sorts them by name.
type ordered struct {
	parquet.Group
	fields []parquet.Field
}

// Fields implements parquet.Node.
func (o ordered) Fields() []parquet.Field { return o.fields }

func schemaOf(t table) *parquet.Schema {
	group := parquet.Group{}
	for _, c := range t.columns {
		group[c.name] = parquet.Optional(nodeOf(c.kind))
	}
	byName := map[string]parquet.Field{}
	for _, f := range group.Fields() {
		byName[f.Name()] = f
	}
	o := ordered{Group: group}
	for _, c := range t.columns {
		o.fields = append(o.fields, byName[c.name])
	}
	return parquet.NewSchema(t.name, o)
}

func nodeOf(k kind) parquet.Node {
	switch k {
	case whole:
		return parquet.Int(64)
	case number:
		return parquet.Leaf(parquet.DoubleType)
	case flag:
		return parquet.Leaf(parquet.BooleanType)
	}
	return parquet.String()
}
