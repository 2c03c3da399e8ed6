mod eevdf;
mod host;
mod moves;
mod places;
mod properties;
mod shares;
mod vectors;
