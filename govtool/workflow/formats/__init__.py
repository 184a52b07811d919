"""Files of provenance graphs: JSON and GraphML both ways, DOT and PROV-JSON to be written."""
