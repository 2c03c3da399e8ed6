mod eevdf;
mod host;
mod moves;
mod places;
mod properties;
mod rounds;
mod shares;
mod vectors;
