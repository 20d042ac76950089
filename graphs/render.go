package graphs

import "malt/internal/say"

// Render returns the graph in a format by name: spec, text, dot or svg.
func (g *Graph) Render(format string) (string, error) {
	switch format {
	case "spec":
		return g.String(), nil
	case "text":
		return g.Text(), nil
	case "dot":
		return g.DOT(), nil
	case "svg":
		return g.SVG(), nil
	}
	return "", say.Unknown(nil, "format", format, "spec", "text", "dot", "svg")
}
